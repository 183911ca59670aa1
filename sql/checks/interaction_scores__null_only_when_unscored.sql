-- one row per judgement with a score and a reason why there is none, or with neither
with

interaction_scores as (

    select * from interaction_scores

),

half_scored as (

    select
        interaction_id,
        judge,
        goal_achievement,
        believability,
        skillfulness,
        realistic,
        unscored_kind,
    from interaction_scores
    where
        (goal_achievement is null) <> (unscored_kind is not null)
        or (believability is null) <> (unscored_kind is not null)
        or (skillfulness is null) <> (unscored_kind is not null)
        or (realistic is null) <> (unscored_kind is not null)

)

select * from half_scored
