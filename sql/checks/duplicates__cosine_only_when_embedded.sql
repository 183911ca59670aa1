-- one row per duplicate whose cosine does not fit the way it was found
with

duplicates as (

    select * from duplicates

),

misfits as (

    select
        table_name,
        row_id,
        method,
        cosine,
    from duplicates
    where
        (method = 'embedding' and cosine is null)
        or (method = 'exact' and cosine is not null)
        or cosine not between -1.0001 and 1.0001

)

select * from misfits
