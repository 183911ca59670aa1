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

kinds as (

    select
        target,
        is_failed,
        perception_fault is not null and not is_failed as is_lost,
        unnest(['explicit intent', 'latent intent', 'emotion']) as label,
        unnest([gold_explicit, gold_latent, gold_emotion]) as gold,
        unnest([predicted_explicit, predicted_latent, predicted_emotion]) as predicted,
    from turns

),

labels as (

    select
        target,
        label,
        gold,
        if(is_failed, null, predicted) as predicted,
    from kinds
    where not is_lost

),

counted as (

    select
        target,
        label,
        gold,
        predicted,
        count(*) as turns,
    from labels
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
