-- one row per label
select
    build,
    dialogue_id,
    element,
    outcome,
    value,
    pending,
    changed,
    votes_for,
    votes_cast,
    panel,
from parts
