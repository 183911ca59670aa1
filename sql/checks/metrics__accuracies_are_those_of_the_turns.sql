-- one row per target and label whose accuracy is not the share of turns predicted right
with

turns as (

    select
        conversations.target,
        conversation_turns.assistant_text is null and conversations.fault = 'target' as failed,
        conversation_turns.*,
    from conversation_turns
    inner join conversations on conversation_turns.conversation_id = conversations.conversation_id
    where conversations.fault not in ('infra', 'simulator')

),

labels as (

    select
        target,
        failed,
        'explicit_accuracy' as metric,
        coalesce(predicted_explicit = gold_explicit, false) as correct,
    from turns
    where failed or perception_fault is null
    union all
    select
        target,
        failed,
        'latent_accuracy' as metric,
        coalesce(predicted_latent = gold_latent, false) as correct,
    from turns
    where failed or perception_fault is null
    union all
    select
        target,
        failed,
        'emotion_accuracy' as metric,
        coalesce(predicted_emotion = gold_emotion, false) as correct,
    from turns
    where failed or perception_fault is null

),

expected as (

    select
        'eyt' as benchmark,
        target,
        metric,
        avg((correct and not failed)::integer) as value,
        count(*) as n,
    from labels
    group by target, metric

),

measured as (

    select count(*) as metrics
    from metrics

),

metrics as (

    select * from metrics
    where
        pool is null
        and language is null
        and simulator is null
        and judge is null
        and partner is null
        and goal_type is null
        and slice is null

),

other_than_expected as (

    select
        expected.metric,
        expected.benchmark,
        expected.target,
        metrics.value,
        expected.value as expected_value,
        metrics.n,
        expected.n as expected_n,
    from expected
    cross join measured
    left join metrics
        on
            expected.benchmark = metrics.benchmark
            and expected.target = metrics.target
            and expected.metric = metrics.metric
    where
        measured.metrics > 0
        and (
            metrics.n is distinct from expected.n
            or (metrics.value is null) <> (expected.value is null)
            or abs(metrics.value - expected.value) > 1e-9
        )

)

select * from other_than_expected
