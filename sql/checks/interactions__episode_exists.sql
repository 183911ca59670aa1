-- one row per interaction of an episode that is not there
with

interactions as (

    select * from interactions

),

interaction_episodes as (

    select * from interaction_episodes

),

orphans as (

    select
        interactions.interaction_id,
        interactions.episode_id,
    from interactions
    left join interaction_episodes on interactions.episode_id = interaction_episodes.episode_id
    where interaction_episodes.episode_id is null

)

select * from orphans
