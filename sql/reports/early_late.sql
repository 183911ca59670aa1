-- how far do the first two turns score above the later ones? one row per pool, target and metric, in points of 100
with

metrics as (

    select * from metrics

),

early_late as (

    select
        coalesce(pool, 'all') as pool,
        target,
        metric,
        value,
        ci_low,
        ci_high,
        n,
        n_unit,
        n_unscored,
        n_fault,
    from metrics
    where
        benchmark = 'eyt'
        and target is not null
        and metric like '%early_minus_late%'
        and coalesce(language, simulator, judge, slice) is null
    order by pool, metric, target

)

select * from early_late
