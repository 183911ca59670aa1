-- one row per character inspired by a persona that is not there
with

characters as (

    select * from characters

),

persona_candidates as (

    select * from persona_candidates

),

uninspired as (

    select
        characters.character_id,
        characters.persona_id,
    from characters
    left join persona_candidates on characters.persona_id = persona_candidates.persona_id
    where characters.persona_id is not null and persona_candidates.persona_id is null

)

select * from uninspired
