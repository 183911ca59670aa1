-- how long do conversations grow? one row per pool, target and number of answered turns; void ones are left out
with

conversations as (

    select * from conversations
    where fault in ('none', 'target')

),

counted as (

    select
        pool,
        target,
        t_actual as turns,
        count(*) as conversations,
        count(*) filter (where stop_reason = 'achieved') as achieved,
        count(*) filter (where fault = 'target') as ended_by_target_fault,
    from conversations
    group by pool, target, t_actual

),

shares as (

    select
        pool,
        target,
        turns,
        conversations,
        achieved,
        ended_by_target_fault,
        round(100.0 * conversations / sum(conversations) over (partition by pool, target), 1) as percent,
    from counted
    order by pool, target, turns

)

select * from shares
