-- one row per scene with two characters
select
    build,
    pairing_id,
    scene_id,
    character1_id,
    character2_id,
    language,
from parts
