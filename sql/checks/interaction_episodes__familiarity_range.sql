-- one row per episode whose familiarity is not from 0 to 10
with

interaction_episodes as (

    select * from interaction_episodes

),

out_of_range as (

    select
        episode_id,
        familiarity,
    from interaction_episodes
    where familiarity is null or familiarity not between 0 and 10

)

select * from out_of_range
