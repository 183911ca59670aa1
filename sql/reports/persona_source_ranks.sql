-- do persona pools rank the targets alike? one row per two pools and metric: spearman's rho over the targets
with

metrics as (

    select
        pool,
        target,
        metric,
        value,
    from metrics
    where
        benchmark = 'eyt'
        and pool is not null
        and target is not null
        and value is not null
        and coalesce(language, simulator, judge, partner, goal_type, slice) is null

),

compared as (

    select distinct
        metric,
        pool as pool_a,
        pool_b,
    from comparisons
    where kind = 'pools'

),

pairs as (

    select
        compared.pool_a,
        compared.pool_b,
        compared.metric,
        round(on_a.value, 9) as value_a,
        round(on_b.value, 9) as value_b,
    from compared
    inner join metrics as on_a
        on
            compared.pool_a = on_a.pool
            and compared.metric = on_a.metric
    inner join metrics as on_b
        on
            compared.pool_b = on_b.pool
            and compared.metric = on_b.metric
            and on_a.target = on_b.target

),

ranked as (

    select
        pool_a,
        pool_b,
        metric,
        rank() over (partition by pool_a, pool_b, metric order by value_a)
        + 0.5 * count(*) over (partition by pool_a, pool_b, metric, value_a) as rank_a,
        rank() over (partition by pool_a, pool_b, metric order by value_b)
        + 0.5 * count(*) over (partition by pool_a, pool_b, metric, value_b) as rank_b,
    from pairs

),

correlated as (

    select
        pool_a,
        pool_b,
        metric,
        count(*) as n,
        case
            when count(*) < 3 or var_pop(rank_a) = 0 or var_pop(rank_b) = 0 then null
            else corr(rank_a, rank_b)
        end as spearman_rho,
    from ranked
    group by pool_a, pool_b, metric
    order by pool_a, pool_b, metric

)

select * from correlated
