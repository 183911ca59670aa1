-- one row per judgement of a conversation that is not there
with

final_intent_judgements as (

    select * from final_intent_judgements

),

conversations as (

    select * from conversations

),

orphans as (

    select
        final_intent_judgements.conversation_id,
        final_intent_judgements.judge,
    from final_intent_judgements
    left join conversations on final_intent_judgements.conversation_id = conversations.conversation_id
    where conversations.conversation_id is null

)

select * from orphans
