-- one row per target and judge whose completion rate or satisfaction is not that of the judgements
with

judged as (

    select
        conversations.target,
        final_intent_judgements.judge,
        final_intent_judgements.completed,
        final_intent_judgements.satisfaction,
    from final_intent_judgements
    inner join conversations on final_intent_judgements.conversation_id = conversations.conversation_id
    where conversations.fault not in ('infra', 'simulator')

),

expected as (

    select
        'eyt' as benchmark,
        target,
        judge,
        'ficr' as metric,
        avg(coalesce(completed, false)::integer) as value,
        count(*) as n,
    from judged
    group by target, judge
    union all
    select
        'eyt' as benchmark,
        target,
        judge,
        'satisfaction' as metric,
        avg(25.0 * (satisfaction - 1)) as value,
        count(satisfaction) as n,
    from judged
    group by target, judge

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
        and judge is not null
        and partner is null
        and goal_type is null
        and slice is null

),

other_than_expected as (

    select
        expected.metric,
        expected.benchmark,
        expected.target,
        expected.judge,
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
            and expected.judge = metrics.judge
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
