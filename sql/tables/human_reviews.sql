-- one row per label and reviewer
select
    build,
    dialogue_id,
    element,
    reviewer,
    action,
    proposed,
    value_hash,
    seconds,
    created_at,
from parts
