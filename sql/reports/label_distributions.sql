-- how are the labels spread? one row per label, language and value, with its share of that label and language
with

labels as (

    select
        'goal_type' as label,
        language,
        goal_type as found,
    from scenes
    union all
    select
        'age_band' as label,
        language,
        age_band as found,
    from characters
    union all
    select
        'gender' as label,
        language,
        gender as found,
    from characters
    union all
    select
        'talkway' as label,
        pairings.language,
        conflicts.talkway as found,
    from conflicts
    inner join pairings on conflicts.pairing_id = pairings.pairing_id
    where conflicts.selected
    union all
    select
        'familiarity' as label,
        pairings.language,
        cast(conflicts.familiarity as varchar) as found,
    from conflicts
    inner join pairings on conflicts.pairing_id = pairings.pairing_id
    where conflicts.selected
    union all
    select
        'goal_completion' as label,
        language,
        cast(goal_completion as varchar) as found,
    from dialogues
    union all
    select
        'sentiment' as label,
        dialogues.language,
        utterances.sentiment as found,
    from utterances
    inner join dialogues on utterances.dialogue_id = dialogues.dialogue_id
    union all
    select
        'emotion' as label,
        dialogues.language,
        lower(utterances.emotion) as found,
    from utterances
    inner join dialogues on utterances.dialogue_id = dialogues.dialogue_id

),

counted as (

    select
        label,
        language,
        found,
        count(*) as times,
    from labels
    group by label, language, found

),

shares as (

    select
        label,
        language,
        found,
        times,
        round(100.0 * times / sum(times) over (partition by label, language), 1) as percent,
    from counted
    order by label asc, language asc, times desc, found asc

)

select * from shares
