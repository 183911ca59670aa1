-- one row per diversity statistic that was measured over another number of rows than the table has in its language
with

diversity as (

    select * from diversity

),

texts as (

    select
        'characters' as table_name,
        language,
    from characters
    union all
    select
        'scenes' as table_name,
        language,
    from scenes

),

counted as (

    select
        table_name,
        language,
        count(*) as n_there,
    from texts
    group by table_name, language

),

off_count as (

    select
        diversity.table_name,
        diversity.language,
        diversity.statistic,
        diversity.n,
        coalesce(counted.n_there, 0) as n_there,
    from diversity
    left join counted
        on
            diversity.table_name = counted.table_name
            and diversity.language = counted.language
    where
        diversity.n <> coalesce(counted.n_there, 0)
        or diversity.value not between -1.0001 and 1.0001

)

select * from off_count
