-- which guards fired on what a model wrote as a person? one row per stage, what it wrote, model and guard; intervals
-- are Wilson's, as if each text stood alone
with

dialogues as (

    select * from dialogues

),

written as (

    select
        'dialogues' as stage,
        'dialogue' as wrote,
        writer as model,
        guards,
    from dialogues
    union all
    select
        'interaction' as stage,
        'utterance' as wrote,
        case when interaction_turns.speaker = 1 then interactions.target else interactions.partner end as model,
        interaction_turns.guards,
    from interaction_turns
    inner join interactions on interaction_turns.interaction_id = interactions.interaction_id
    union all
    select
        'conversation' as stage,
        'user turn' as wrote,
        conversations.simulator as model,
        conversation_turns.user_guards as guards,
    from conversation_turns
    inner join conversations on conversation_turns.conversation_id = conversations.conversation_id
    where conversation_turns.turn_index > 1
    union all
    select
        'conversation' as stage,
        'user turn' as wrote,
        simulator as model,
        final_guards as guards,
    from conversations
    where
        final_user_text is not null
        or fault = 'simulator'
    union all
    select
        'conversation' as stage,
        'answer' as wrote,
        conversations.target as model,
        conversation_turns.answer_guards as guards,
    from conversation_turns
    inner join conversations on conversation_turns.conversation_id = conversations.conversation_id
    where conversation_turns.assistant_text is not null

),

texts as (

    select
        stage,
        wrote,
        model,
        count(*) as n,
        count(*) filter (where len(guards) > 0) as any_guard,
    from written
    group by stage, wrote, model

),

fired as (

    select
        stage,
        wrote,
        model,
        unnest(guards) as guard,
    from written

),

hits as (

    select
        stage,
        wrote,
        model,
        guard,
        count(*) as times,
    from fired
    group by stage, wrote, model, guard
    union all
    select
        stage,
        wrote,
        model,
        'any' as guard,
        any_guard as times,
    from texts

),

shares as (

    select
        texts.stage,
        texts.wrote,
        texts.model,
        hits.guard,
        hits.times,
        texts.n,
        round(hits.times / texts.n, 4) as share,
        wilson(hits.times, texts.n, -1) as share_low,
        wilson(hits.times, texts.n, 1) as share_high,
    from texts
    inner join hits
        on
            texts.stage = hits.stage
            and texts.wrote = hits.wrote
            and texts.model = hits.model
    order by
        texts.stage asc,
        texts.wrote asc,
        texts.model asc,
        hits.guard = 'any' desc,
        hits.times desc,
        hits.guard asc

)

select * from shares
