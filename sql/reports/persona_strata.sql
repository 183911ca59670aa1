-- is each pool a fair sample? one row per pool and stratum: personas there, left after deduplication, wanted, drawn
with

dropped as (

    select distinct row_id
    from duplicates
    where table_name = 'persona_candidates'

),

available as (

    select
        persona_candidates.pool,
        persona_candidates.stratum,
        count(*) as source_personas,
        count(*) filter (where dropped.row_id is null) as available,
    from persona_candidates
    left join dropped on persona_candidates.persona_id = dropped.row_id
    group by persona_candidates.pool, persona_candidates.stratum

),

drawn as (

    select
        pool,
        stratum,
        max(quota) as quota,
        count(*) as drawn,
    from persona_pool
    group by pool, stratum

),

strata as (

    select
        available.pool,
        available.stratum,
        available.source_personas,
        available.available,
        coalesce(drawn.quota, 0) as quota,
        coalesce(drawn.drawn, 0) as drawn,
        round(100.0 * available.available / nullif(sum(available.available) over (partition by available.pool), 0), 1)
            as percent_of_available,
        round(100.0 * coalesce(drawn.drawn, 0) / nullif(sum(drawn.drawn) over (partition by available.pool), 0), 1)
            as percent_of_drawn,
        sum(available.available) over (partition by available.pool) as n_available,
        sum(drawn.drawn) over (partition by available.pool) as n_drawn,
    from available
    left join drawn
        on
            available.pool = drawn.pool
            and available.stratum = drawn.stratum
    order by available.pool asc, available.available desc, available.stratum asc

)

select * from strata
