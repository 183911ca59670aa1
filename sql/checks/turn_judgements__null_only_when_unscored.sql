-- one row per judged turn that lacks a sub-score without a reason, or names a reason and lacks none
with

turn_judgements as (

    select * from turn_judgements

),

counted as (

    select
        conversation_id,
        turn_index,
        judge,
        unscored_kind,
        (empathy_recognition is null)::integer
        + (empathy_attribution is null)::integer
        + (empathy_resonance is null)::integer
        + (empathy_response is null)::integer
        + (empathy_support is null)::integer
        + (persona_style is null)::integer
        + (persona_value is null)::integer
        + (persona_culture is null)::integer
        + (persona_memory is null)::integer
        + (persona_security is null)::integer
        + (anthropomorphic_colloquial is null)::integer
        + (anthropomorphic_emotional is null)::integer
        + (anthropomorphic_flow is null)::integer
        + (anthropomorphic_flexibility is null)::integer
        + (anthropomorphic_rhythm is null)::integer as missing,
    from turn_judgements

),

half_scored as (

    select * from counted
    where (missing > 0) <> (unscored_kind is not null)

)

select * from half_scored
