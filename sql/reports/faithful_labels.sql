-- are dialogues faithful to the labels they were written from? one row per element and language: how often annotators
-- keep such a label as it was, and how often a verdict does; intervals are Wilson's, as if each label stood alone
with

reviews as (

    select * from reviews

),

verdicts as (

    select * from verdicts

),

dialogues as (

    select * from dialogues

),

reviewed as (

    select
        reviews.build,
        reviews.dialogue_id,
        reviews.element,
        count(reviews.action) as readable,
        count(*) filter (where reviews.action = 'keep') as kept,
    from reviews
    where
        reviews.element in (
            'goal.goal1', 'goal.goal2', 'scene.topic', 'scene.relationship', 'scene.familiarity', 'scene.talkway'
        )
        or reviews.element like 'persona.%'
    group by reviews.build, reviews.dialogue_id, reviews.element

),

labels as (

    select
        dialogues.language,
        regexp_replace(reviewed.element, '\.[0-9]+\.', '.') as element,
        reviewed.readable,
        reviewed.kept,
        (verdicts.outcome is not null)::int as decided,
        (verdicts.outcome <> 'rejected' and not verdicts.changed)::int as stands,
    from reviewed
    inner join dialogues
        on
            reviewed.build = dialogues.build
            and reviewed.dialogue_id = dialogues.dialogue_id
    left join verdicts
        on
            reviewed.build = verdicts.build
            and reviewed.dialogue_id = verdicts.dialogue_id
            and reviewed.element = verdicts.element

),

added_up as (

    select
        element,
        language,
        count(*) as labels,
        sum(readable) as reviews,
        sum(kept) as kept,
        sum(decided) as verdicts,
        sum(stands) as unchanged,
    from labels
    group by element, language

),

shares as (

    select
        element,
        language,
        labels,
        reviews,
        kept,
        round(kept / nullif(reviews, 0), 4) as kept_share,
        wilson(kept, reviews, -1) as kept_low,
        wilson(kept, reviews, 1) as kept_high,
        verdicts,
        unchanged,
        round(unchanged / nullif(verdicts, 0), 4) as unchanged_share,
        wilson(unchanged, verdicts, -1) as unchanged_low,
        wilson(unchanged, verdicts, 1) as unchanged_high,
    from added_up
    order by kept_share asc, element asc, language asc

)

select * from shares
