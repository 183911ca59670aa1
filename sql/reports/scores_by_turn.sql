-- does a target tire? one row per pool, target, dimension and turn: unweighted score of that turn, 0 to 100
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
    from metrics
    where
        benchmark = 'eyt'
        and target is not null
        and (slice ->> '$.turn') is not null
        and metric like '%\_unweighted' escape '\'
        and coalesce(language, simulator, judge) is null
    order by pool, target, metric, turn

)

select * from by_turn
