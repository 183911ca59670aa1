-- one row per conversation whose turns do not count from 1 without gap or repeat
with

conversation_turns as (

    select * from conversation_turns

),

conversations as (

    select
        conversation_id,
        count(*) as turns,
        count(distinct turn_index) as places,
        min(turn_index) as first_turn,
        max(turn_index) as last_turn,
    from conversation_turns
    group by conversation_id

),

gaps as (

    select * from conversations
    where first_turn <> 1 or last_turn <> turns or places <> turns

)

select * from gaps
