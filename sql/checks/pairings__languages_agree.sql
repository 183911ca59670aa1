-- one row per pairing whose scene or characters are missing or of another language
with

pairings as (

    select * from pairings

),

scenes as (

    select * from scenes

),

characters as (

    select * from characters

),

mixed as (

    select
        pairings.pairing_id,
        pairings.language,
        scenes.language as scene_language,
        first_characters.language as character1_language,
        second_characters.language as character2_language,
    from pairings
    left join scenes on pairings.scene_id = scenes.scene_id
    left join characters as first_characters on pairings.character1_id = first_characters.character_id
    left join characters as second_characters on pairings.character2_id = second_characters.character_id
    where
        scenes.language is distinct from pairings.language
        or first_characters.language is distinct from pairings.language
        or second_characters.language is distinct from pairings.language

)

select * from mixed
