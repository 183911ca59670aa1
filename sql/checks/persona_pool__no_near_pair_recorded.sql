-- one row per two personas of one pool that say the same, or of which one was recorded as a duplicate of the other
with

persona_pool as (

    select * from persona_pool

),

persona_candidates as (

    select * from persona_candidates

),

duplicates as (

    select * from duplicates
    where table_name = 'persona_candidates'

),

drawn as (

    select
        persona_pool.pool,
        persona_pool.persona_id,
        persona_candidates.description,
    from persona_pool
    inner join persona_candidates
        on
            persona_pool.pool = persona_candidates.pool
            and persona_pool.persona_id = persona_candidates.persona_id

),

same_text as (

    select
        one.pool,
        one.persona_id,
        other.persona_id as other_id,
        'same text' as why,
    from drawn as one
    inner join drawn as other
        on
            one.pool = other.pool
            and one.description = other.description
            and one.persona_id < other.persona_id

),

recorded as (

    select
        one.pool,
        one.persona_id,
        other.persona_id as other_id,
        'recorded' as why,
    from duplicates
    inner join drawn as one on duplicates.row_id = one.persona_id
    inner join drawn as other on duplicates.duplicate_of = other.persona_id

),

near_pairs as (

    select * from same_text
    union all
    select * from recorded

)

select * from near_pairs
