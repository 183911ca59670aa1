-- one row per pool member without a source persona of that pool
with

persona_pool as (

    select * from persona_pool

),

persona_candidates as (

    select * from persona_candidates

),

orphans as (

    select
        persona_pool.pool,
        persona_pool.rank,
        persona_pool.persona_id,
    from persona_pool
    left join persona_candidates
        on
            persona_pool.persona_id = persona_candidates.persona_id
            and persona_pool.pool = persona_candidates.pool
    where persona_candidates.persona_id is null

)

select * from orphans
