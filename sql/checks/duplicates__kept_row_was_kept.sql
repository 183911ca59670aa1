-- one row per duplicate that names, as the kept one, a row that was dropped itself; what repeats a source row names
-- the first of its kind, which may be near another
with

duplicates as (

    select * from duplicates

),

dropped as (

    select distinct
        table_name,
        row_id,
    from duplicates
    where row_id <> duplicate_of

),

chained as (

    select
        duplicates.table_name,
        duplicates.row_id,
        duplicates.duplicate_of,
    from duplicates
    inner join dropped
        on
            duplicates.table_name = dropped.table_name
            and duplicates.duplicate_of = dropped.row_id
    where duplicates.method <> 'exact' or duplicates.table_name in ('characters', 'scenes')

)

select * from chained
