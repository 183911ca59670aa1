-- which labels are recognised? one row per target, kind of label and gold label, over all pools
with

metrics as (

    select * from metrics

),

by_label as (

    select
        target,
        metric,
        slice ->> '$.label' as gold_label,
        value,
        ci_low,
        ci_high,
        n,
        n_fault,
    from metrics
    where
        benchmark = 'eyt'
        and target is not null
        and (slice ->> '$.label') is not null
        and coalesce(pool, language, simulator, judge) is null
    order by metric, gold_label, target

)

select * from by_label
