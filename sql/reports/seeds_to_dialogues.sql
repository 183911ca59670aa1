-- what became of each scene? one row per pairing of it: seed, people, verdict, dialogue and what was released
with

scenes as (

    select * from scenes

),

pairings as (

    select * from pairings

),

characters as (

    select * from characters

),

conflicts as (

    select * from conflicts

),

dialogues as (

    select * from dialogues

),

items as (

    select
        dialogue_id,
        count(*) as awareness_items,
    from awareness_items
    group by dialogue_id

),

episodes as (

    select
        dialogue_id,
        count(*) as episodes,
    from interaction_episodes
    group by dialogue_id

),

traced as (

    select
        scenes.seed_id,
        scenes.scene_id,
        scenes.language,
        scenes.goal_type,
        scenes.topic,
        first_characters.name as character1,
        second_characters.name as character2,
        conflicts.is_coherent,
        conflicts.selected,
        conflicts.selection_rank,
        dialogues.dialogue_id,
        dialogues.turn_count,
        dialogues.goal_completion,
        coalesce(items.awareness_items, 0) as awareness_items,
        coalesce(episodes.episodes, 0) as episodes,
    from scenes
    left join pairings on scenes.scene_id = pairings.scene_id
    left join characters as first_characters on pairings.character1_id = first_characters.character_id
    left join characters as second_characters on pairings.character2_id = second_characters.character_id
    left join conflicts on pairings.pairing_id = conflicts.pairing_id
    left join dialogues on pairings.pairing_id = dialogues.pairing_id
    left join items on dialogues.dialogue_id = items.dialogue_id
    left join episodes on dialogues.dialogue_id = episodes.dialogue_id
    order by conflicts.selection_rank nulls last, scenes.scene_id, pairings.pairing_id

)

select * from traced
