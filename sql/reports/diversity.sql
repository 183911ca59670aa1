-- how unlike are the characters and the scenes? one row per table, language and statistic, each with its n
with

diversity as (

    select * from diversity

),

measured as (

    select
        diversity.table_name,
        diversity.language,
        diversity.statistic,
        diversity.value,
        diversity.n,
        diversity.n_of,
        case when diversity.statistic = 'attribute_coverage' then 'values of the pool' else 'pairs of texts' end
            as of_what,
    from diversity
    order by diversity.table_name asc, diversity.language asc, diversity.statistic asc

)

select * from measured
