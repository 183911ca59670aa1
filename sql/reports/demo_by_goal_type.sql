-- is a target better at some goals? one row per target, goal type and metric of DEMO's interaction
with

metrics as (

    select * from metrics

),

by_goal_type as (

    select
        target,
        goal_type,
        metric,
        value,
        ci_low,
        ci_high,
        n,
        n_unit,
        n_unscored,
        n_fault,
        unit,
    from metrics
    where
        benchmark = 'demo'
        and target is not null
        and goal_type is not null
        and coalesce(language, judge, partner, slice) is null
    order by target, goal_type, metric

)

select * from by_goal_type
