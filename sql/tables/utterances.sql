-- one row per turn of a dialogue
select
    build,
    dialogue_id,
    turn_index,
    speaker,
    text,
    intent,
    sentiment,
    emotion,
    stance,
    strategy,
from parts
