-- one row per target and judge whose unweighted dimension is not that of the turn scores, dialogue by dialogue
with

turn_scores as (

    select
        conversation_id,
        judge,
        'empathy_unweighted' as metric,
        empathy_recognition
        + empathy_attribution
        + empathy_resonance
        + empathy_response
        + empathy_support as score,
    from turn_judgements
    union all
    select
        conversation_id,
        judge,
        'persona_alignment_unweighted' as metric,
        persona_style
        + persona_value
        + persona_culture
        + persona_memory
        + persona_security as score,
    from turn_judgements
    union all
    select
        conversation_id,
        judge,
        'anthropomorphic_unweighted' as metric,
        anthropomorphic_colloquial
        + anthropomorphic_emotional
        + anthropomorphic_flow
        + anthropomorphic_flexibility
        + anthropomorphic_rhythm as score,
    from turn_judgements

),

lengths as (

    select
        conversation_id,
        count(*) as turns,
    from conversation_turns
    group by conversation_id

),

dialogues as (

    select
        conversations.target,
        conversations.pool,
        turn_scores.judge,
        turn_scores.metric,
        turn_scores.conversation_id,
        avg(turn_scores.score) as score,
        count(turn_scores.score) as scored,
        any_value(lengths.turns) as turns,
    from turn_scores
    inner join conversations on turn_scores.conversation_id = conversations.conversation_id
    inner join lengths on turn_scores.conversation_id = lengths.conversation_id
    where conversations.fault not in ('infra', 'simulator')
    group by
        conversations.target, conversations.pool, turn_scores.judge, turn_scores.metric, turn_scores.conversation_id

),

expected as (  -- noqa: ST03

    select
        'eyt' as benchmark,
        target,
        judge,
        metric,
        pool,
        20.0 * avg(score) as value,
        count(*) as n,
    from dialogues
    where scored > 0 and 2 * scored >= turns
    group by target, pool, judge, metric

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
    from other_than_metrics('expected', tolerance := 1e-6)

)

select * from other_than_expected
