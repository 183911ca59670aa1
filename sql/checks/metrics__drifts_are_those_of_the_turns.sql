-- one row per target and drift that is not the mean over dialogues of their mean over turns
with

turns as (

    select
        conversations.target,
        conversations.pool,
        turn_drifts.*,
    from turn_drifts
    inner join conversations on turn_drifts.conversation_id = conversations.conversation_id
    where conversations.fault not in ('infra', 'simulator')

),

dialogues as (

    select
        target,
        pool,
        conversation_id,
        'drift_latent' as metric,
        avg(drift_latent) as drift,
    from turns
    group by target, pool, conversation_id
    union all
    select
        target,
        pool,
        conversation_id,
        'drift_explicit' as metric,
        avg(drift_explicit) as drift,
    from turns
    group by target, pool, conversation_id
    union all
    select
        target,
        pool,
        conversation_id,
        'drift_pair' as metric,
        avg(drift_pair) as drift,
    from turns
    group by target, pool, conversation_id

),

expected as (  -- noqa: ST03

    select
        'eyt' as benchmark,
        target,
        null as judge,
        metric,
        pool,
        avg(drift) as value,
        count(drift) as n,
    from dialogues
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
