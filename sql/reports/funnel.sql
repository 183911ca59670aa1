-- where did the rows of each stage end? one row per stage and member, in the order in which they were committed
with

stage_runs as (

    select * from stage_runs

),

ended as (

    select
        build,
        stage,
        member,
        n_in as rows_in,
        n_produced as produced,
        n_filtered as filtered,
        n_failed as failed,
        round(100.0 * n_produced / nullif(n_in, 0), 1) as produced_percent,
        calls,
        round(cost_usd, 4) as cost_usd,
        partial,
        round(epoch(ended_at) - epoch(started_at), 1) as seconds,
        ended_at,
    from stage_runs

),

in_order as (

    select * exclude (ended_at)
    from ended
    order by ended_at

)

select * from in_order
