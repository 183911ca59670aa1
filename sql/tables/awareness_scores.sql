-- one row per prediction and judge
select
    build,
    item_id,
    target,
    sample,
    judge,
    accuracy,
    hallucination,
    accuracy_reason,
    hallucination_reason,
    unscored_kind,
    scored_by,
from parts
