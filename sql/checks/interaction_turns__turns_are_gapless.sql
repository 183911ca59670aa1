-- one row per interaction whose turns do not count from 1 without gap or repeat
with

interaction_turns as (

    select * from interaction_turns

),

interactions as (

    select
        interaction_id,
        count(*) as turns,
        count(distinct turn_index) as places,
        min(turn_index) as first_turn,
        max(turn_index) as last_turn,
    from interaction_turns
    group by interaction_id

),

gaps as (

    select * from interactions
    where first_turn <> 1 or last_turn <> turns or places <> turns

)

select * from gaps
