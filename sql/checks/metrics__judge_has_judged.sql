-- one row per judge and target with a score in the metrics and no judgement that it could come from
with

judged as (

    select
        target,
        judge,
    from awareness_scores
    union
    select
        interactions.target,
        interaction_scores.judge,
    from interaction_scores
    inner join interactions on interaction_scores.interaction_id = interactions.interaction_id
    union
    select
        conversations.target,
        turn_judgements.judge,
    from turn_judgements
    inner join conversations on turn_judgements.conversation_id = conversations.conversation_id
    union
    select
        conversations.target,
        final_intent_judgements.judge,
    from final_intent_judgements
    inner join conversations on final_intent_judgements.conversation_id = conversations.conversation_id

),

scored as (

    select distinct
        target,
        judge,
    from metrics
    where judge is not null and target is not null and n > 0

),

unfounded as (

    select
        scored.target,
        scored.judge,
    from scored
    left join judged
        on
            scored.target = judged.target
            and scored.judge = judged.judge
    where judged.judge is null

)

select * from unfounded
