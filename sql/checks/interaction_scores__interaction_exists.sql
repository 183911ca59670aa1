-- one row per score of an interaction that is not there
with

interaction_scores as (

    select * from interaction_scores

),

interactions as (

    select * from interactions

),

orphans as (

    select
        interaction_scores.interaction_id,
        interaction_scores.judge,
    from interaction_scores
    left join interactions on interaction_scores.interaction_id = interactions.interaction_id
    where interactions.interaction_id is null

)

select * from orphans
