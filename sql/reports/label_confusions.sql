-- which labels are taken for which? one row per target, kind of label, gold and predicted label; null: unreadable, or
-- at the turn where the target failed. The turns are those of the accuracies.
with

conversations as (

    select * from conversations
    where fault in ('none', 'target')

),

turns as (

    select
        conversations.target,
        conversation_turns.*,
        conversations.fault = 'target' and conversation_turns.assistant_text is null as is_failed,
    from conversation_turns
    inner join conversations on conversation_turns.conversation_id = conversations.conversation_id

),

labels as (

    select
        target,
        'explicit intent' as label,
        gold_explicit as gold,
        if(is_failed, null, predicted_explicit) as predicted,
        perception_fault is not null and not is_failed as is_lost,
    from turns
    union all
    select
        target,
        'latent intent' as label,
        gold_latent as gold,
        if(is_failed, null, predicted_latent) as predicted,
        perception_fault is not null and not is_failed as is_lost,
    from turns
    union all
    select
        target,
        'emotion' as label,
        gold_emotion as gold,
        if(is_failed, null, predicted_emotion) as predicted,
        perception_fault is not null and not is_failed as is_lost,
    from turns

),

counted as (

    select
        target,
        label,
        gold,
        predicted,
        count(*) as turns,
    from labels
    where not is_lost
    group by target, label, gold, predicted

),

shares as (

    select
        target,
        label,
        gold,
        predicted,
        turns,
        round(100.0 * turns / sum(turns) over (partition by target, label, gold), 1) as percent_of_gold,
    from counted
    order by target asc, label asc, gold asc, turns desc, predicted asc

)

select * from shares
