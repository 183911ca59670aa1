-- what does a judge say of a conversation? one row per turn of the first judged conversation
with

judgements as (

    select * from final_intent_judgements

),

turns as (

    select * from conversation_turns

),

firsts as (

    select * from judgements
    order by unscored_kind is not null, conversation_id, judge
    limit 1

),

judged as (

    select
        firsts.conversation_id,
        turns.turn_index,
        turns.user_text,
        turns.assistant_text,
        firsts.judge,
        firsts.completed,
        firsts.satisfaction,
        firsts.reason,
        firsts.unscored_kind,
    from firsts
    left join turns on firsts.conversation_id = turns.conversation_id
    order by turns.turn_index

)

select * from judged
