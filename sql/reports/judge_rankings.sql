-- do judges order the targets alike? one row per two judges, metric, pool or language and statistic; n counts targets
with

agreement as (

    select * from agreement

),

rankings as (

    select
        raters,
        split_part(category, ', ', 2) as metric,
        coalesce(nullif(split_part(category, ', ', 3), ''), 'all') as pool_or_language,
        statistic,
        value,
        ci_low,
        ci_high,
        n,
    from agreement
    where category like 'order of targets, %'
    order by raters, metric, pool_or_language, statistic

)

select * from rankings
