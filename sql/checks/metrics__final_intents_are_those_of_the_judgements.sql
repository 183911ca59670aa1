-- one row per target and judge whose completion rate or satisfaction is not that of the judgements
with

judged as (

    select
        conversations.target,
        conversations.pool,
        final_intent_judgements.judge,
        final_intent_judgements.completed,
        final_intent_judgements.satisfaction,
    from final_intent_judgements
    inner join conversations on final_intent_judgements.conversation_id = conversations.conversation_id
    where conversations.fault not in ('infra', 'simulator')

),

expected as (  -- noqa: ST03

    select
        'eyt' as benchmark,
        target,
        judge,
        'ficr' as metric,
        pool,
        avg(coalesce(completed, false)::integer) as value,
        count(*) as n,
    from judged
    group by target, pool, judge
    union all
    select
        'eyt' as benchmark,
        target,
        judge,
        'satisfaction' as metric,
        pool,
        avg(25.0 * (satisfaction - 1)) as value,
        count(satisfaction) as n,
    from judged
    group by target, pool, judge

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
