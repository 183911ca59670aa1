-- do scores and ranks depend on the warm-up weight? one row per pool, metric, target (null: the ranking) and weight
with

metrics as (

    select * from metrics

),

swept as (

    select
        coalesce(pool, 'all') as pool,
        metric,
        target,
        slice ->> '$.alpha' as alpha,
        value,
        ci_low,
        ci_high,
        n,
        slice ->> '$.flips' as flipped_pairs,
    from metrics
    where
        benchmark = 'eyt'
        and (slice ->> '$.alpha') is not null
        and coalesce(language, simulator, judge) is null
    order by pool, metric, target nulls first, alpha

)

select * from swept
