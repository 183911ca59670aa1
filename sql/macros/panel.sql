-- one score from those that the judges of a panel gave (null where one gave none), of whom there are `judges`.
-- `majority`: what more than half of them gave, else the median; `mean`: their mean. Null unless more than half scored
create macro panel_score(given, judges, rule := 'majority') as
case
    when judges = 1 then list_any_value(given)
    when 2 * list_count(given) <= judges then null
    when rule = 'mean' then list_avg(given)
    else coalesce(
        list_filter(
            list_distinct(given),
            lambda score: 2 * list_count(list_filter(given, lambda one: one = score)) > judges  -- noqa: LT01
        )[1],
        list_median(given)
    )
end;

-- what a panel says: one row per turn of a conversation that is not void, with the fifteen sub-scores and the sums of
-- the three dimensions (0 to 5). `judges`: the panel, as in judging.judges; one that gave nothing counts in it, too
create macro panel(judges, rule := 'majority') as table
    with

    judged as (

        select * from turn_judgements
        where list_contains(judges, judge)

    ),

    lists as (

        select
            turns.conversation_id,
            turns.turn_index,
            any_value(conversations.target) as target,
            any_value(conversations.pool) as pool,
            any_value(chat_seeds.language) as language,
            list(given.empathy_recognition) as empathy_recognition,
            list(given.empathy_attribution) as empathy_attribution,
            list(given.empathy_resonance) as empathy_resonance,
            list(given.empathy_response) as empathy_response,
            list(given.empathy_support) as empathy_support,
            list(given.persona_style) as persona_style,
            list(given.persona_value) as persona_value,
            list(given.persona_culture) as persona_culture,
            list(given.persona_memory) as persona_memory,
            list(given.persona_security) as persona_security,
            list(given.anthropomorphic_colloquial) as anthropomorphic_colloquial,
            list(given.anthropomorphic_emotional) as anthropomorphic_emotional,
            list(given.anthropomorphic_flow) as anthropomorphic_flow,
            list(given.anthropomorphic_flexibility) as anthropomorphic_flexibility,
            list(given.anthropomorphic_rhythm) as anthropomorphic_rhythm,
        from conversation_turns as turns
        inner join conversations on turns.conversation_id = conversations.conversation_id
        inner join chat_seeds on conversations.chat_seed_id = chat_seeds.chat_seed_id
        left join judged as given
            on
                turns.conversation_id = given.conversation_id
                and turns.turn_index = given.turn_index
        where conversations.fault not in ('infra', 'simulator')
        group by turns.conversation_id, turns.turn_index

    ),

    scores as (

        select
            conversation_id,
            turn_index,
            target,
            pool,
            language,
            panel_score(empathy_recognition, len(judges), rule) as empathy_recognition,
            panel_score(empathy_attribution, len(judges), rule) as empathy_attribution,
            panel_score(empathy_resonance, len(judges), rule) as empathy_resonance,
            panel_score(empathy_response, len(judges), rule) as empathy_response,
            panel_score(empathy_support, len(judges), rule) as empathy_support,
            panel_score(persona_style, len(judges), rule) as persona_style,
            panel_score(persona_value, len(judges), rule) as persona_value,
            panel_score(persona_culture, len(judges), rule) as persona_culture,
            panel_score(persona_memory, len(judges), rule) as persona_memory,
            panel_score(persona_security, len(judges), rule) as persona_security,
            panel_score(anthropomorphic_colloquial, len(judges), rule) as anthropomorphic_colloquial,
            panel_score(anthropomorphic_emotional, len(judges), rule) as anthropomorphic_emotional,
            panel_score(anthropomorphic_flow, len(judges), rule) as anthropomorphic_flow,
            panel_score(anthropomorphic_flexibility, len(judges), rule) as anthropomorphic_flexibility,
            panel_score(anthropomorphic_rhythm, len(judges), rule) as anthropomorphic_rhythm,
        from lists

    )

    select
        *,
        empathy_recognition
        + empathy_attribution
        + empathy_resonance
        + empathy_response
        + empathy_support as empathy,
        persona_style + persona_value + persona_culture + persona_memory + persona_security as persona_alignment,
        anthropomorphic_colloquial
        + anthropomorphic_emotional
        + anthropomorphic_flow
        + anthropomorphic_flexibility
        + anthropomorphic_rhythm as anthropomorphic,
    from scores
