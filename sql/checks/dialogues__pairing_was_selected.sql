-- one row per dialogue written for a pairing that was not selected
with

dialogues as (

    select * from dialogues

),

conflicts as (

    select * from conflicts

),

unselected as (

    select
        dialogues.dialogue_id,
        dialogues.pairing_id,
        conflicts.selected,
    from dialogues
    left join conflicts on dialogues.pairing_id = conflicts.pairing_id
    where conflicts.selected is distinct from true

)

select * from unselected
