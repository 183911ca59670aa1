-- how disputed were the labels? one row per category and element, the most disputed first
with

verdicts as (

    select
        split_part(element, '.', 1) as category,
        split_part(element, '.', -1) as element,
        outcome,
        panel,
        changed,
        pending,
    from verdicts

),

counted as (

    select
        category,
        element,
        count(*) as labels,
        count(*) filter (where panel is null and outcome = 'unanimous') as kept_by_all,
        count(*) filter (where panel is not null) as voted_on,
        count(*) filter (where outcome = 'majority') as majority,
        count(*) filter (where outcome = 'rejected') as rejected,
        count(*) filter (where outcome = 'manual') as manual,
        count(*) filter (where pending) as pending,
        count(*) filter (where changed) as changed,
    from verdicts
    group by category, element

),

disputed as (

    select
        *,
        round(100.0 * voted_on / labels, 1) as voted_on_percent,
    from counted
    order by voted_on_percent desc, category asc, element asc

)

select * from disputed
