-- one row per judgement of a conversation that is void by a fault other than the target's
with

void as (

    select
        conversation_id,
        fault,
    from conversations
    where fault in ('infra', 'simulator')

),

judgements as (

    select
        conversation_id,
        judge,
    from turn_judgements
    union
    select
        conversation_id,
        judge,
    from final_intent_judgements

),

of_void as (

    select
        judgements.conversation_id,
        judgements.judge,
        void.fault,
    from judgements
    inner join void on judgements.conversation_id = void.conversation_id

)

select * from of_void
