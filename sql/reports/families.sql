-- which model families do what? one row per benchmark, pool or language, family and metric, over all its targets
with

metrics as (

    select * from metrics

),

families as (

    select
        benchmark,
        coalesce(pool, 'all') as pool,
        coalesce(language, 'all') as language,
        slice ->> '$.family' as family,
        metric,
        value,
        ci_low,
        ci_high,
        n,
        n_unit,
        n_unscored,
        n_fault,
        units,
        units_void,
        unit,
    from metrics
    where
        (slice ->> '$.family') is not null
        and coalesce(target, simulator, judge, partner, goal_type) is null
    order by benchmark, pool, language, metric, family

)

select * from families
