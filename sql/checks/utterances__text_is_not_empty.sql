-- one row per turn in which nothing is said
with

utterances as (

    select * from utterances

),

silent as (

    select
        dialogue_id,
        turn_index,
        text,
    from utterances
    where trim(text) = ''

)

select * from silent
