-- one row per thing that was judged, judge and dimension: what it was given, on 0 to 1, 1 best; null: unscored. A thing
-- is a turn, a conversation, a prediction or an interaction; what a fault made void is none
create macro scores_given() as table
    with

    dimensions as (

        select
            conversation_id,
            turn_index,
            judge,
            unnest(['empathy', 'persona', 'anthropomorphic']) as dimension,
            unnest(
                [
                    (
                        empathy_recognition
                        + empathy_attribution
                        + empathy_resonance
                        + empathy_response
                        + empathy_support
                    )
                    / 5,
                    (persona_style + persona_value + persona_culture + persona_memory + persona_security) / 5,
                    (
                        anthropomorphic_colloquial
                        + anthropomorphic_emotional
                        + anthropomorphic_flow
                        + anthropomorphic_flexibility
                        + anthropomorphic_rhythm
                    )
                    / 5
                ]
            )::double as score,
        from turn_judgements

    ),

    turns as (

        select
            'turn' as kind,
            conversations.target,
            dimensions.conversation_id,
            dimensions.turn_index,
            null::varchar as interaction_id,
            null::varchar as item_id,
            conversations.sample,
            dimensions.judge,
            dimensions.dimension,
            dimensions.score,
        from dimensions
        inner join conversations on dimensions.conversation_id = conversations.conversation_id
        where conversations.fault not in ('infra', 'simulator')

    ),

    finals as (

        select
            'conversation' as kind,
            conversations.target,
            final_intent_judgements.conversation_id,
            null::integer as turn_index,
            null::varchar as interaction_id,
            null::varchar as item_id,
            conversations.sample,
            final_intent_judgements.judge,
            unnest(['satisfaction', 'completed']) as dimension,
            unnest(
                [(final_intent_judgements.satisfaction - 1) / 4, final_intent_judgements.completed::integer]
            )::double as score,
        from final_intent_judgements
        inner join conversations on final_intent_judgements.conversation_id = conversations.conversation_id
        where conversations.fault not in ('infra', 'simulator')

    ),

    predictions as (

        select
            'prediction' as kind,
            target,
            null::varchar as conversation_id,
            null::integer as turn_index,
            null::varchar as interaction_id,
            item_id,
            sample,
            judge,
            unnest(['accuracy', 'hallucination']) as dimension,
            unnest([accuracy / 10, hallucination / 10])::double as score,
        from awareness_scores

    ),

    interactions as (

        select
            'interaction' as kind,
            interactions.target,
            null::varchar as conversation_id,
            null::integer as turn_index,
            interaction_scores.interaction_id,
            null::varchar as item_id,
            interactions.sample,
            interaction_scores.judge,
            unnest(['goal_achievement', 'believability', 'skillfulness', 'realistic']) as dimension,
            unnest(
                [
                    interaction_scores.goal_achievement / 10,
                    interaction_scores.believability / 10,
                    interaction_scores.skillfulness / 10,
                    interaction_scores.realistic / 10
                ]
            )::double as score,
        from interaction_scores
        inner join interactions on interaction_scores.interaction_id = interactions.interaction_id
        where interactions.fault not in ('infra', 'partner')

    )

    select * from turns
    union all
    select * from finals
    union all
    select * from predictions
    union all
    select * from interactions
