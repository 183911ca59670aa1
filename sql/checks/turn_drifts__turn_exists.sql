-- one row per drift of a turn that is not there
with

turn_drifts as (

    select * from turn_drifts

),

conversation_turns as (

    select * from conversation_turns

),

orphans as (

    select
        turn_drifts.conversation_id,
        turn_drifts.turn_index,
    from turn_drifts
    left join conversation_turns
        on
            turn_drifts.conversation_id = conversation_turns.conversation_id
            and turn_drifts.turn_index = conversation_turns.turn_index
    where conversation_turns.conversation_id is null

)

select * from orphans
