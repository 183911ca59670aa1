-- one row per interaction whose turn count is not the number of its turns
with

interactions as (

    select * from interactions

),

counted as (

    select
        interaction_id,
        count(*) as turns,
    from interaction_turns
    group by interaction_id

),

miscounted as (

    select
        interactions.interaction_id,
        interactions.turn_count,
        coalesce(counted.turns, 0) as turns,
    from interactions
    left join counted on interactions.interaction_id = counted.interaction_id
    where coalesce(counted.turns, 0) <> interactions.turn_count

)

select * from miscounted
