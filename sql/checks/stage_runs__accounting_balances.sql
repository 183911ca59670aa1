-- one row per stage whose input rows did not each end once: produced, filtered or failed
with

stage_runs as (

    select * from stage_runs

),

unbalanced as (

    select
        build,
        stage,
        n_in,
        n_produced,
        n_filtered,
        n_failed,
    from stage_runs
    where n_in <> n_produced + n_filtered + n_failed

)

select * from unbalanced
