-- one row per seed dialogue whose turn count is not the number of its turns
with

seed_dialogues as (

    select * from seed_dialogues

),

miscounted as (

    select
        seed_id,
        turn_count,
        len(turns) as turns,
    from seed_dialogues
    where turn_count <> len(turns)

)

select * from miscounted
