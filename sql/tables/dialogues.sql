-- one row per synthesised dialogue
select
    build,
    dialogue_id,
    pairing_id,
    language,
    speaker1,
    speaker2,
    turn_count,
    workflow,
    summary1,
    summary2,
    goal_completion,
    goal_completion_reason,
    stop_reason,
    writer,
    guards,
from parts
