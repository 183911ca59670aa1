-- one row per episode made by this build from a dialogue that is not there; a release has none
with

interaction_episodes as (

    select * from interaction_episodes

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
        interaction_episodes.episode_id,
        interaction_episodes.dialogue_id,
    from interaction_episodes
    left join dialogues
        on
            interaction_episodes.dialogue_id = dialogues.dialogue_id
            and interaction_episodes.language = dialogues.language
    where
        interaction_episodes.source = 'build'
        and dialogues.dialogue_id is null
        and not exists (select 1 from releases)

)

select * from orphans
