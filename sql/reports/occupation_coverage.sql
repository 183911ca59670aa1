-- how far do occupations fall into groups? one row per pool: personas with and without one, the commonest of 'other'
with

personas as (

    select
        pool,
        occupation,
        occupation_group,
    from persona_candidates

),

others as (

    select
        pool,
        occupation,
        count(*) as personas,
        row_number() over (partition by pool order by count(*) desc, occupation asc) as place,
    from personas
    where occupation_group = 'other'
    group by pool, occupation

),

commonest as (

    select
        pool,
        string_agg(occupation, ', ' order by place) as commonest_other,
    from others
    where place <= 5
    group by pool

),

counted as (

    select
        pool,
        count(*) as personas,
        count(occupation_group) as with_occupation,
        count(*) filter (where occupation_group not in ('other', 'not_in_workforce')) as in_soc_group,
        count(*) filter (where occupation_group = 'not_in_workforce') as not_in_workforce,
        count(*) filter (where occupation_group = 'other') as other,
    from personas
    group by pool

),

coverage as (

    select
        counted.*,
        commonest.commonest_other,
        round(100.0 * (counted.with_occupation - counted.other) / nullif(counted.with_occupation, 0), 1)
            as covered_percent,
    from counted
    left join commonest on counted.pool = commonest.pool
    order by counted.pool asc

)

select * from coverage
