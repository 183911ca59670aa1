-- one row per interaction and judge
select
    build,
    interaction_id,
    judge,
    goal_achievement,
    believability,
    skillfulness,
    realistic,
    reasons,
    unscored_kind,
    scored_by,
from parts
