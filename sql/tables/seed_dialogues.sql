-- one row per usable seed dialogue
select
    build,
    seed_id,
    corpus,
    split,
    source_index,
    language,
    turns,
    turn_count,
    narrative,
    licence,
from parts
