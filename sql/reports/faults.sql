-- whose fault ended a simulation? one row per benchmark, target, pool and fault, with its share of that cell
with

simulations as (

    select
        'demo' as benchmark,
        'all' as pool,
        target,
        fault,
    from interactions
    union all
    select
        'eyt' as benchmark,
        pool,
        target,
        fault,
    from conversations

),

counted as (

    select
        benchmark,
        pool,
        target,
        fault,
        count(*) as simulations,
    from simulations
    group by benchmark, pool, target, fault

),

shares as (

    select
        benchmark,
        pool,
        target,
        fault,
        simulations,
        round(100.0 * simulations / sum(simulations) over (partition by benchmark, pool, target), 1) as percent,
        case fault
            when 'none' then 'scored'
            when 'target' then 'scored: failing does not pay'
            else 'void: in no denominator'
        end as counts_as,
    from counted
    order by benchmark asc, pool asc, target asc, simulations desc, fault asc

)

select * from shares
