-- one row per metric with a value that rests on no unit
with

metrics as (

    select * from metrics

),

unfounded as (

    select
        benchmark,
        target,
        judge,
        slice,
        metric,
        value,
        n,
        ci_low,
        ci_high,
        unit,
    from metrics
    where
        value is not null and n = 0

)

select * from unfounded
