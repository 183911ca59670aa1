-- one row per stage run whose filtered or failed rows are not those of its reasons
with

stage_runs as (

    select * from stage_runs

),

counted as (

    select
        build,
        stage,
        member,
        n_filtered,
        n_failed,
        coalesce(list_sum(map_values(cast(cast(filtered_by as json) as map (varchar, bigint)))), 0) as filtered,
        coalesce(list_sum(map_values(cast(cast(failed_by as json) as map (varchar, bigint)))), 0) as failed,
    from stage_runs

),

differing as (

    select * from counted
    where n_filtered <> filtered or n_failed <> failed

)

select * from differing
