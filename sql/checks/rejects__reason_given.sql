-- one row per reject that does not say why
with

rejects as (

    select * from rejects

),

silent as (

    select
        stage,
        row_key,
        kind,
        reason,
    from rejects
    where trim(reason) = '' or trim(kind) = ''

)

select * from silent
