-- one row per stratum whose draw is not its share of the pool's available personas, rounded up or down
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
        count(*) as available,
    from persona_candidates
    left join dropped on persona_candidates.persona_id = dropped.row_id
    where dropped.row_id is null and persona_candidates.stratum is not null
    group by persona_candidates.pool, persona_candidates.stratum

),

drawn as (

    select
        pool,
        stratum,
        count(*) as drawn,
    from persona_pool
    group by pool, stratum

),

strata as (

    select
        coalesce(available.pool, drawn.pool) as pool,
        coalesce(available.stratum, drawn.stratum) as stratum,
        coalesce(available.available, 0) as available,
        coalesce(drawn.drawn, 0) as drawn,
    from available
    full join drawn
        on
            available.pool = drawn.pool
            and available.stratum = drawn.stratum

),

totals as (

    select
        pool,
        sum(available) as n_available,
        sum(drawn) as n_drawn,
    from strata
    group by pool
    having sum(available) > 0 and sum(drawn) > 0

),

shares as (

    select
        strata.*,
        totals.n_drawn * strata.available / totals.n_available as share,
    from strata
    inner join totals on strata.pool = totals.pool

),

off_share as (

    select * from shares
    where abs(drawn - share) >= 1

)

select * from off_share
