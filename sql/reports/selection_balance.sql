-- is the selection even? one row per goal type and language: assessed, coherent, selected, written
with

pairings as (

    select
        pairings.pairing_id,
        scenes.goal_type,
        pairings.language,
    from pairings
    inner join scenes on pairings.scene_id = scenes.scene_id

),

conflicts as (

    select * from conflicts

),

dialogues as (

    select * from dialogues

),

counted as (

    select
        pairings.goal_type,
        pairings.language,
        count(*) as pairings,
        count(conflicts.pairing_id) as assessed,
        count(*) filter (where conflicts.is_coherent) as coherent,
        count(*) filter (where conflicts.selected) as selected,
        count(dialogues.dialogue_id) as dialogues,
    from pairings
    left join conflicts on pairings.pairing_id = conflicts.pairing_id
    left join dialogues on pairings.pairing_id = dialogues.pairing_id
    group by pairings.goal_type, pairings.language
    order by pairings.goal_type, pairings.language

)

select * from counted
