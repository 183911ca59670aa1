-- one row per target with a score in the metrics and no prediction, interaction or conversation
with

targets as (

    select target from awareness_predictions
    union
    select target from interactions
    union
    select target from conversations

),

scored as (

    select distinct target
    from metrics
    where target is not null and n > 0

),

unfounded as (

    select scored.target
    from scored
    left join targets on scored.target = targets.target
    where targets.target is null

)

select * from unfounded
