-- what would each judge alone say? one row per benchmark, pool, target, metric and judge (panel: all together)
with

metrics as (

    select * from metrics

),

judged as (

    select distinct
        benchmark,
        metric,
    from metrics
    where judge is not null

),

by_judge as (

    select
        metrics.benchmark,
        coalesce(metrics.pool, 'all') as pool,
        metrics.target,
        metrics.metric,
        coalesce(metrics.judge, 'panel') as judge,
        metrics.value,
        metrics.ci_low,
        metrics.ci_high,
        metrics.n,
        metrics.n_unit,
        metrics.n_unscored,
        metrics.n_fault,
        metrics.units,
        metrics.units_void,
        metrics.unit,
    from metrics
    inner join judged
        on
            metrics.benchmark = judged.benchmark
            and metrics.metric = judged.metric
    where
        metrics.target is not null
        and coalesce(metrics.language, metrics.simulator, metrics.partner, metrics.goal_type, metrics.slice) is null
    order by metrics.benchmark, pool, metrics.metric, metrics.target, metrics.judge nulls first

)

select * from by_judge
