-- how did the user simulator behave? one row per simulator, pool and metric
with

metrics as (

    select * from metrics

),

health as (

    select
        simulator,
        coalesce(pool, 'all') as pool,
        metric,
        value,
        ci_low,
        ci_high,
        n,
        n_unit,
        n_fault,
        units,
        units_void,
        unit,
    from metrics
    where
        benchmark = 'eyt'
        and target is null
        and metric like 'simulator_%'
    order by simulator, pool, metric

)

select * from health
