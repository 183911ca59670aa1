-- one row per item made by this build from a dialogue that is not there; a release has none
with

awareness_items as (

    select * from awareness_items

),

dialogues as (

    select * from dialogues

),

releases as (

    select * from stage_runs
    where stage = 'release'

),

orphans as (

    select
        awareness_items.item_id,
        awareness_items.dialogue_id,
    from awareness_items
    left join dialogues
        on
            awareness_items.dialogue_id = dialogues.dialogue_id
            and awareness_items.language = dialogues.language
    where
        awareness_items.source = 'build'
        and dialogues.dialogue_id is null
        and not exists (select 1 from releases)

)

select * from orphans
