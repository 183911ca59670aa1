-- one row per pairing of a character with itself
with

pairings as (

    select * from pairings

),

alone as (

    select
        pairing_id,
        character1_id,
    from pairings
    where character1_id = character2_id

)

select * from alone
