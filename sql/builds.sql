-- one row per build: its stages, its last commit, its cost
with records as (
    select * from catalogue.records
    where summary is not null or problem is not null
),

runs as (
    select * from catalogue.runs
    where state = 'committed'
),

facts as (
    select * from catalogue.facts
),

read as (
    select
        records.build,
        records.run,
        records.problem is not null as unreadable,
        runs.profile,
        runs.ends_chain,
        runs.partial,
        runs.calls,
        runs.cost_usd,
        runs.started_at,
        runs.ended_at,
    from records
    left join runs on records.build = runs.build and records.run = runs.run
),

by_build as (
    select
        build,
        arg_max(profile, ended_at) as profile,
        case
            when bool_or(unreadable) then 'unreadable'
            when bool_or(partial) then 'partial'
            when bool_or(ends_chain) then 'complete'
            else 'unfinished'
        end as state,
        count(ended_at) as stages,
        coalesce(list(run order by run) filter (where partial), []) as partial_stages,
        coalesce(list(run order by run) filter (where unreadable), []) as unreadable_stages,
        min(started_at) as created_at,
        max(ended_at) as last_commit_at,
        case when count(ended_at) = count(calls) then cast(sum(calls) as bigint) end as calls,
        case when count(ended_at) = count(cost_usd) then sum(cost_usd) end as cost_usd,
    from read
    group by build
)

select
    by_build.build,
    by_build.profile,
    by_build.state,
    coalesce(by_build.build = facts.shown, false) as shown,
    by_build.stages,
    by_build.partial_stages,
    by_build.unreadable_stages,
    by_build.created_at,
    by_build.last_commit_at,
    by_build.calls,
    by_build.cost_usd,
from by_build
cross join facts
