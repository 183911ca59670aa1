-- do targets that drift reach less? one row per pool and target; the correlation is over the targets of the pool
with

metrics as (

    select
        *,
        coalesce(pool, 'all') as of_pool,
    from metrics
    where
        benchmark = 'eyt'
        and target is not null
        and coalesce(language, simulator, judge, partner, goal_type, slice) is null

),

values_of_targets as (

    select
        of_pool as pool,
        target,
        max(value) filter (where metric = 'drift_latent') as drift,
        max(value) filter (where metric = 'ficr') as ficr,
        max(n) filter (where metric = 'ficr') as conversations,
    from metrics
    group by of_pool, target

),

ranked as (

    select
        pool,
        target,
        drift,
        ficr,
        conversations,
        rank() over (partition by pool order by drift)
        + (count(*) over (partition by pool, drift) - 1) * 0.5 as drift_rank,
        rank() over (partition by pool order by ficr)
        + (count(*) over (partition by pool, ficr) - 1) * 0.5 as ficr_rank,
    from values_of_targets
    where drift is not null and ficr is not null

),

correlated as (

    select
        pool,
        target,
        drift,
        ficr,
        conversations,
        if(
            count(*) over (partition by pool) > 2
            and min(drift) over (partition by pool) < max(drift) over (partition by pool)
            and min(ficr) over (partition by pool) < max(ficr) over (partition by pool),
            corr(drift_rank, ficr_rank) over (partition by pool),
            null
        ) as spearman_rho,
        count(*) over (partition by pool) as n_targets,
    from ranked
    order by pool, target

)

select * from correlated
