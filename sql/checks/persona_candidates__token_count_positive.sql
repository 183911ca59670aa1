-- one row per source persona whose description has no word piece
with

persona_candidates as (

    select * from persona_candidates

),

wordless as (

    select
        persona_id,
        pool,
        token_count,
    from persona_candidates
    where token_count <= 0

)

select * from wordless
