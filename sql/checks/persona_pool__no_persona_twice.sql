-- one row per persona that a pool holds more than once
with

persona_pool as (

    select * from persona_pool

),

repeated as (

    select
        pool,
        persona_id,
        count(*) as times,
    from persona_pool
    group by pool, persona_id
    having count(*) > 1

)

select * from repeated
