-- one row per episode, target and sample
select
    build,
    interaction_id,
    episode_id,
    target,
    partner,
    sample,
    turn_count,
    stop_reason,
    fault,
from parts
