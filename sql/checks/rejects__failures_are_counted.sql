-- one row per stage with fewer rejects than rows it counts as failed
with

stage_runs as (

    select * from stage_runs

),

rejects as (

    select
        stage,
        count(distinct row_key) as rejected,
    from rejects
    group by stage

),

unexplained as (

    select
        stage_runs.stage,
        stage_runs.n_failed,
        coalesce(rejects.rejected, 0) as rejected,
    from stage_runs
    left join rejects on stage_runs.stage = rejects.stage
    where stage_runs.n_failed > coalesce(rejects.rejected, 0)

)

select * from unexplained
