-- is each pool a fair sample of its source? one row per pool and stratum: there, quota and drawn
with

drawn as (

    select
        pool,
        stratum,
        max(quota) as quota,
        count(*) as drawn,
    from persona_pool
    group by pool, stratum

),

pools as (

    select
        pool,
        count(*) as pool_size,
    from persona_pool
    group by pool

),

sources as (

    select
        pool,
        count(*) as source_personas,
    from persona_candidates
    group by pool

),

strata as (

    select
        drawn.pool,
        drawn.stratum,
        drawn.quota,
        drawn.drawn,
        round(100.0 * drawn.drawn / pools.pool_size, 1) as percent_of_pool,
        pools.pool_size,
        sources.source_personas,
    from drawn
    inner join pools on drawn.pool = pools.pool
    left join sources on drawn.pool = sources.pool
    order by drawn.pool asc, drawn.drawn desc, drawn.stratum asc

)

select * from strata
