-- one row per distilled pair of goals and their scene
select
    build,
    scene_id,
    seed_id,
    language,
    goal1,
    goal2,
    goal_type,
    time,
    location,
    topic,
    atmosphere,
    domain,
from parts
