-- one row per duplicate that was drawn into a pool, distilled or kept all the same
with

duplicates as (

    select * from duplicates

),

used as (

    select
        'persona_candidates' as table_name,
        persona_id as row_id,
    from persona_pool
    union all
    select
        'seed_dialogues' as table_name,
        seed_id as row_id,
    from scenes
    union all
    select
        'scenes' as table_name,
        scene_id as row_id,
    from scenes
    union all
    select
        'characters' as table_name,
        character_id as row_id,
    from characters

),

dropped_and_used as (

    select
        duplicates.table_name,
        duplicates.row_id,
        duplicates.duplicate_of,
    from duplicates
    inner join used
        on
            duplicates.table_name = used.table_name
            and duplicates.row_id = used.row_id

)

select * from dropped_and_used
