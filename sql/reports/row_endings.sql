-- where did every row end? one row per stage run and ending: produced, or why it was filtered or failed
with

stage_runs as (

    select
        *,
        coalesce(stage || '@' || member, stage) as run,
    from stage_runs

),

produced as (

    select
        started_at,
        run,
        n_in,
        'produced' as outcome,
        null as reason,
        n_produced as n_rows,
    from stage_runs

),

reasons as (

    select
        started_at,
        run,
        n_in,
        'filtered' as outcome,
        cast(cast(filtered_by as json) as map (varchar, bigint)) as by_reason,
    from stage_runs
    union all
    select
        started_at,
        run,
        n_in,
        'failed' as outcome,
        cast(cast(failed_by as json) as map (varchar, bigint)) as by_reason,
    from stage_runs

),

others as (

    select
        started_at,
        run,
        n_in,
        outcome,
        unnest(map_keys(by_reason)) as reason,
        unnest(map_values(by_reason)) as n_rows,
    from reasons

),

endings as (

    select * from produced
    union all by name
    select * from others

),

in_order as (

    select
        run,
        n_in,
        outcome,
        reason,
        n_rows,
        round(100.0 * n_rows / nullif(n_in, 0), 1) as percent,
    from endings
    order by started_at asc, run asc, outcome desc, n_rows desc, reason asc

)

select * from in_order
