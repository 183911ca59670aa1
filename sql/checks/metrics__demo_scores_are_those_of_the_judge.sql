-- one row per target and judge whose awareness or interaction is not the mean of the scores given
with

awareness as (

    select
        target,
        judge,
        'awareness' as metric,
        unnest([accuracy, hallucination]) as score,
    from awareness_scores

),

interaction as (

    select
        interactions.target,
        interaction_scores.judge,
        'interaction' as metric,
        unnest(
            [
                interaction_scores.goal_achievement,
                interaction_scores.believability,
                interaction_scores.skillfulness,
                interaction_scores.realistic
            ]
        ) as score,
    from interaction_scores
    inner join interactions on interaction_scores.interaction_id = interactions.interaction_id
    where interactions.fault not in ('infra', 'partner')

),

scores as (

    select * from awareness
    union all
    select * from interaction

),

expected as (

    select
        'demo' as benchmark,
        target,
        judge,
        metric,
        avg(score) as value,
        count(score) as n,
    from scores
    group by target, judge, metric

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
