-- does a target lose track of what the user needs? one row per pool, target and turn: drift of the latent intent there
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
        and metric = 'drift_latent'
        and target is not null
        and (slice ->> '$.turn') is not null
        and coalesce(language, simulator, judge) is null
    order by pool, target, turn

)

select * from by_turn
