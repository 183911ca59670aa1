-- one row per disputed label and panel member
select
    build,
    dialogue_id,
    element,
    voter,
    family,
    candidates,
    presentation,
    candidate,
    reason,
from parts
