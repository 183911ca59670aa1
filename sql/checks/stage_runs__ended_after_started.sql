-- one row per stage that ended before it started
with

stage_runs as (

    select * from stage_runs

),

backwards as (

    select
        build,
        stage,
        started_at,
        ended_at,
    from stage_runs
    where ended_at < started_at

)

select * from backwards
