-- where were rows lost, and why? one row per stage, reason and table, most rows first; what a filter left out by its
-- name, all else by kind
with

named as (

    select
        *,
        if(kind = 'filter', nullif(regexp_extract(reason, '^([a-z_]+): ', 1), ''), null) as filter_name,
    from rejects

),

rejects as (

    select
        stage as lost_in,
        coalesce(filter_name, kind) as why,
        count(distinct row_key) as lost_rows,
        bool_or(retryable) as may_pass,
        any_value(reason order by row_key) as for_example,
    from named
    group by stage, coalesce(filter_name, kind)

),

duplicates as (

    select
        table_name as lost_in,
        method || ' duplicate' as why,
        count(*) as lost_rows,
        false as may_pass,
        any_value(row_id || ' is like ' || duplicate_of order by row_id) as for_example,
    from duplicates
    group by table_name, method

),

losses as (

    select * from rejects
    union all by name
    select * from duplicates

),

most_first as (

    select * from losses
    order by lost_rows desc, lost_in asc, why asc

)

select * from most_first
