-- one row per target and label whose accuracy is not the share of turns predicted right
with

turns as (

    select
        conversations.target,
        conversations.pool,
        conversation_turns.assistant_text is null and conversations.fault = 'target' as failed,
        conversation_turns.*,
    from conversation_turns
    inner join conversations on conversation_turns.conversation_id = conversations.conversation_id
    where conversations.fault not in ('infra', 'simulator')

),

labels as (

    select
        target,
        pool,
        failed,
        'explicit_accuracy' as metric,
        coalesce(predicted_explicit = gold_explicit, false) as correct,
    from turns
    where failed or perception_fault is null
    union all
    select
        target,
        pool,
        failed,
        'latent_accuracy' as metric,
        coalesce(predicted_latent = gold_latent, false) as correct,
    from turns
    where failed or perception_fault is null
    union all
    select
        target,
        pool,
        failed,
        'emotion_accuracy' as metric,
        coalesce(predicted_emotion = gold_emotion, false) as correct,
    from turns
    where failed or perception_fault is null

),

expected as (  -- noqa: ST03

    select
        'eyt' as benchmark,
        target,
        null as judge,
        metric,
        pool,
        avg((correct and not failed)::integer) as value,
        count(*) as n,
    from labels
    group by target, pool, metric

),

other_than_expected as (

    select
        metric,
        benchmark,
        target,
        judge,
        value,
        expected_value,
        n,
        expected_n,
    from other_than_metrics('expected')

)

select * from other_than_expected
