-- one row per turn that is not its speaker's: participant 1 has the odd turns, 2 the even ones
with

utterances as (

    select * from utterances

),

out_of_turn as (

    select
        dialogue_id,
        turn_index,
        speaker,
    from utterances
    where speaker <> if(turn_index % 2 = 1, 1, 2)

)

select * from out_of_turn
