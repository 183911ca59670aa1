-- one row per pool whose ranks do not count from 0 without gap or repeat
with

persona_pool as (

    select * from persona_pool

),

pools as (

    select
        pool,
        count(*) as personas,
        count(distinct rank) as ranks,
        min(rank) as lowest,
        max(rank) as highest,
    from persona_pool
    group by pool

),

gaps as (

    select * from pools
    where lowest <> 0 or highest <> personas - 1 or ranks <> personas

)

select * from gaps
