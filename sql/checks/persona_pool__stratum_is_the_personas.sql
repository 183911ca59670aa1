-- one row per pool member that was drawn from another stratum than its own
with

persona_pool as (

    select * from persona_pool

),

persona_candidates as (

    select * from persona_candidates

),

misplaced as (

    select
        persona_pool.pool,
        persona_pool.rank,
        persona_pool.persona_id,
        persona_pool.stratum,
        persona_candidates.stratum as own_stratum,
    from persona_pool
    inner join persona_candidates
        on
            persona_pool.pool = persona_candidates.pool
            and persona_pool.persona_id = persona_candidates.persona_id
    where persona_pool.stratum <> persona_candidates.stratum

)

select * from misplaced
