-- does a target tire, or lose track? one row per pool, target, metric and turn: the unweighted score of a dimension, 0
-- to 100, or the drift of the latent intent
with

metrics as (

    select * from metrics

),

by_turn as (

    select
        coalesce(pool, 'all') as pool,
        target,
        metric,
        cast(slice ->> '$.turn' as integer) as turn,
        value,
        ci_low,
        ci_high,
        n,
        n_unscored,
        n_fault,
        unit,
    from metrics
    where
        benchmark = 'eyt'
        and target is not null
        and (slice ->> '$.turn') is not null
        and (metric like '%\_unweighted' escape '\' or metric = 'drift_latent')
        and coalesce(language, simulator, judge) is null
    order by pool, target, metric, turn

)

select * from by_turn
