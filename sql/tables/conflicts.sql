-- one row per assessed pairing
select
    build,
    pairing_id,
    reasoning,
    identity_ok,
    goal_ok,
    partner_ok,
    first_verdict,
    reflection,
    is_coherent,
    relationship,
    familiarity,
    talkway,
    selected,
    selection_rank,
from parts
