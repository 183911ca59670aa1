-- one row per metric whose worst cases do not hold its value between them, or stand where nothing is void
with

metrics as (

    select * from metrics

),

misplaced as (

    select
        benchmark,
        target,
        judge,
        slice,
        metric,
        value,
        n,
        units,
        units_void,
        worst_low,
        worst_high,
    from metrics
    where
        units_void > units
        or (worst_low is null) <> (worst_high is null)
        or value not between worst_low - 1e-9 and worst_high + 1e-9
        or (worst_low is not null and units_void = 0)

)

select * from misplaced
