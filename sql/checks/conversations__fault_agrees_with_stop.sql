-- one row per conversation that stops by a fault and names none, or names one and stops otherwise
with

conversations as (

    select * from conversations

),

disagreeing as (

    select
        conversation_id,
        stop_reason,
        fault,
    from conversations
    where
        (stop_reason = 'fault') <> (fault <> 'none')

)

select * from disagreeing
