-- one row per duplicate whose kept row is not there
with

duplicates as (

    select * from duplicates

),

kept as (

    select
        'persona_candidates' as table_name,
        persona_id as row_id,
    from persona_candidates
    union all
    select
        'seed_dialogues' as table_name,
        seed_id as row_id,
    from seed_dialogues
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

unkept as (

    select
        duplicates.table_name,
        duplicates.row_id,
        duplicates.duplicate_of,
    from duplicates
    left join kept
        on
            duplicates.table_name = kept.table_name
            and duplicates.duplicate_of = kept.row_id
    where kept.row_id is null

)

select * from unkept
