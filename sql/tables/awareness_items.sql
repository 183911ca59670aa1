-- one row per element awareness item
select
    build,
    item_id,
    task,
    language,
    dialogue_id,
    dialogue_text,
    turn_index,
    utterance_text,
    gold,
    source,
from parts
