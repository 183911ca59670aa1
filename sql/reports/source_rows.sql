-- what did each source give? one row per table, pool or corpus, and language
with

given as (

    select
        'persona_candidates' as table_name,
        pool as source_name,
        licence,
        language,
    from persona_candidates
    union all
    select
        'seed_dialogues' as table_name,
        corpus as source_name,
        licence,
        language,
    from seed_dialogues

),

counted as (

    select
        table_name,
        source_name,
        language,
        any_value(licence order by licence) as licence,
        count(*) as how_many,
    from given
    group by table_name, source_name, language
    order by table_name, source_name, language

)

select * from counted
