-- one row per conversation and judge
select
    build,
    conversation_id,
    judge,
    family,
    completed,
    satisfaction,
    reason,
    unscored_kind,
    scored_by,
from parts
