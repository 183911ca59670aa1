-- one row per target and drift that is not the mean over dialogues of their mean over turns
with

turns as (

    select
        conversations.target,
        turn_drifts.*,
    from turn_drifts
    inner join conversations on turn_drifts.conversation_id = conversations.conversation_id
    where conversations.fault not in ('infra', 'simulator')

),

dialogues as (

    select
        target,
        conversation_id,
        'drift_latent' as metric,
        avg(drift_latent) as drift,
    from turns
    group by target, conversation_id
    union all
    select
        target,
        conversation_id,
        'drift_explicit' as metric,
        avg(drift_explicit) as drift,
    from turns
    group by target, conversation_id
    union all
    select
        target,
        conversation_id,
        'drift_pair' as metric,
        avg(drift_pair) as drift,
    from turns
    group by target, conversation_id

),

expected as (

    select
        'eyt' as benchmark,
        target,
        metric,
        avg(drift) as value,
        count(drift) as n,
    from dialogues
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
