-- how are the personas' lengths spread? one row per pool and bin of 32 word pieces: how many there and drawn
with

drawn as (

    select
        pool,
        persona_id,
    from persona_pool

),

binned as (

    select
        persona_candidates.pool,
        persona_candidates.token_count - persona_candidates.token_count % 32 as tokens_from,
        drawn.persona_id is not null as is_drawn,
    from persona_candidates
    left join drawn
        on
            persona_candidates.pool = drawn.pool
            and persona_candidates.persona_id = drawn.persona_id

),

bins as (

    select
        pool,
        tokens_from,
        tokens_from + 32 as tokens_below,
        count(*) as source_personas,
        count(*) filter (where is_drawn) as drawn,
    from binned
    group by pool, tokens_from
    order by pool, tokens_from

)

select * from bins
