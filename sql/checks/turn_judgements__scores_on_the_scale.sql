-- one row per judged turn with a sub-score other than 0, one half or 1
with

turn_judgements as (

    select * from turn_judgements

),

off_scale as (

    select
        conversation_id,
        turn_index,
        judge,
    from turn_judgements
    where
        empathy_recognition not in (0, 0.5, 1)
        or empathy_attribution not in (0, 0.5, 1)
        or empathy_resonance not in (0, 0.5, 1)
        or empathy_response not in (0, 0.5, 1)
        or empathy_support not in (0, 0.5, 1)
        or persona_style not in (0, 0.5, 1)
        or persona_value not in (0, 0.5, 1)
        or persona_culture not in (0, 0.5, 1)
        or persona_memory not in (0, 0.5, 1)
        or persona_security not in (0, 0.5, 1)
        or anthropomorphic_colloquial not in (0, 0.5, 1)
        or anthropomorphic_emotional not in (0, 0.5, 1)
        or anthropomorphic_flow not in (0, 0.5, 1)
        or anthropomorphic_flexibility not in (0, 0.5, 1)
        or anthropomorphic_rhythm not in (0, 0.5, 1)

)

select * from off_scale
