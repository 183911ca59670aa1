-- one row per dialogue whose turns do not count from 1 without gap or repeat
with

utterances as (

    select * from utterances

),

dialogues as (

    select
        dialogue_id,
        count(*) as utterances,
        count(distinct turn_index) as turns,
        min(turn_index) as first_turn,
        max(turn_index) as last_turn,
    from utterances
    group by dialogue_id

),

gaps as (

    select * from dialogues
    where first_turn <> 1 or last_turn <> utterances or turns <> utterances

)

select * from gaps
