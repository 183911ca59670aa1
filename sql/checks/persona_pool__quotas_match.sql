-- one row per stratum of a pool from which more or fewer personas were drawn than its quota
with

persona_pool as (

    select * from persona_pool

),

strata as (

    select
        pool,
        stratum,
        min(quota) as quota,
        max(quota) as highest_quota,
        count(*) as personas,
    from persona_pool
    group by pool, stratum

),

off_quota as (

    select * from strata
    where personas <> quota or quota <> highest_quota

)

select * from off_quota
