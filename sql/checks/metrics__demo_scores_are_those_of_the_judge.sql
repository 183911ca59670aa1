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

expected as (  -- noqa: ST03

    select
        'demo' as benchmark,
        target,
        judge,
        metric,
        null as pool,
        avg(score) as value,
        count(score) as n,
    from scores
    group by target, judge, metric

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
