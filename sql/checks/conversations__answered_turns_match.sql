-- one row per conversation whose t_actual is not the number of its answered turns
with

conversations as (

    select * from conversations

),

answered as (

    select
        conversation_id,
        count(assistant_text) as answered,
    from conversation_turns
    group by conversation_id

),

miscounted as (

    select
        conversations.conversation_id,
        conversations.t_actual,
        coalesce(answered.answered, 0) as answered,
    from conversations
    left join answered on conversations.conversation_id = answered.conversation_id
    where coalesce(answered.answered, 0) <> conversations.t_actual

)

select * from miscounted
