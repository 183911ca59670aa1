-- one row per utterance
select
    build,
    interaction_id,
    turn_index,
    speaker,
    text,
from parts
