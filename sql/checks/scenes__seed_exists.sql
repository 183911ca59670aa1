-- one row per scene without the seed dialogue, in its language, that it was distilled from
with

scenes as (

    select * from scenes

),

seed_dialogues as (

    select * from seed_dialogues

),

orphans as (

    select
        scenes.scene_id,
        scenes.seed_id,
        scenes.language,
    from scenes
    left join seed_dialogues
        on
            scenes.seed_id = seed_dialogues.seed_id
            and scenes.language = seed_dialogues.language
    where seed_dialogues.seed_id is null

)

select * from orphans
