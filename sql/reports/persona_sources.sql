-- do persona pools give other scores? one row per two pools, metric and target: unpaired difference of its two values
with

metrics as (

    select
        pool,
        target,
        metric,
        value,
        unit,
    from metrics
    where
        benchmark = 'eyt'
        and pool is not null
        and target is not null
        and coalesce(language, simulator, judge, partner, goal_type, slice) is null

),

comparisons as (

    select * from comparisons
    where kind = 'pools'

),

differences as (

    select
        comparisons.pool as pool_a,
        comparisons.pool_b,
        comparisons.metric,
        comparisons.target_a as target,
        on_a.value as value_a,
        on_b.value as value_b,
        comparisons.difference,
        comparisons.ci_low as difference_low,
        comparisons.ci_high as difference_high,
        comparisons.p_holm,
        comparisons.n,
        on_a.unit,
    from comparisons
    left join metrics as on_a
        on
            comparisons.pool = on_a.pool
            and comparisons.metric = on_a.metric
            and comparisons.target_a = on_a.target
    left join metrics as on_b
        on
            comparisons.pool_b = on_b.pool
            and comparisons.metric = on_b.metric
            and comparisons.target_a = on_b.target
    order by pool_a, comparisons.pool_b, comparisons.metric, target

)

select * from differences
