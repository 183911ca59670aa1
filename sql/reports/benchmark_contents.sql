-- what is in the benchmark? one row per part, task or pool, and language
with

parts as (

    select
        'awareness_items' as part,
        task as of_it,
        language,
        dialogue_id as source_id,
    from awareness_items
    union all
    select
        'interaction_episodes' as part,
        goal_type as of_it,
        language,
        dialogue_id as source_id,
    from interaction_episodes
    union all
    select
        'chat_seeds' as part,
        pool as of_it,
        language,
        persona_id as source_id,
    from chat_seeds
    where error is null

),

counted as (

    select
        part,
        of_it,
        language,
        count(*) as how_many,
        count(distinct source_id) as from_dialogues_or_personas,
    from parts
    group by part, of_it, language
    order by part, of_it, language

)

select * from counted
