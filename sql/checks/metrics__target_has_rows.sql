-- one row per target with a score in the metrics and no prediction, interaction or conversation; that all of them are
-- void is no score
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
    where target is not null and n > 0 and metric <> 'void_share'

),

unfounded as (

    select scored.target
    from scored
    left join targets on scored.target = targets.target
    where targets.target is null

)

select * from unfounded
