-- how many are there of what the settings ask for by number? one row per part, pool or task, and language; null: all
with

parts as (

    select
        'persona_pool' as part,
        pool as of_it,
        null as language,
    from persona_pool
    union all
    select
        'characters' as part,
        null as of_it,
        language,
    from characters
    union all
    select
        'scenes' as part,
        null as of_it,
        language,
    from scenes
    union all
    select
        'pairings' as part,
        null as of_it,
        language,
    from pairings
    union all
    select
        'selected_pairings' as part,
        null as of_it,
        null as language,
    from conflicts
    where selected
    union all
    select
        'awareness_items' as part,
        task as of_it,
        language,
    from awareness_items
    where source = 'build'
    union all
    select
        'interaction_episodes' as part,
        null as of_it,
        language,
    from interaction_episodes
    where source = 'build'
    union all
    select
        'chat_seeds' as part,
        pool as of_it,
        null as language,
    from chat_seeds
    where error is null

),

counted as (

    select
        part,
        of_it,
        language,
        count(*) as there,
    from parts
    group by part, of_it, language
    order by part, of_it, language

)

select * from counted
