-- one row per turn, rater and dimension
select
    build,
    conversation_id,
    turn_index,
    annotator,
    dimension,
    score,
    saw_judge,
    created_at,
from parts
