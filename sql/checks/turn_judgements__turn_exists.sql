-- one row per judgement of a turn that is not there
with

turn_judgements as (

    select * from turn_judgements

),

conversation_turns as (

    select * from conversation_turns

),

orphans as (

    select
        turn_judgements.conversation_id,
        turn_judgements.turn_index,
        turn_judgements.judge,
    from turn_judgements
    left join conversation_turns
        on
            turn_judgements.conversation_id = conversation_turns.conversation_id
            and turn_judgements.turn_index = conversation_turns.turn_index
    where conversation_turns.conversation_id is null

)

select * from orphans
