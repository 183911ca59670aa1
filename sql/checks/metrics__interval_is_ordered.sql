-- one row per metric whose interval has one end only, is upside down, or stands where there is no value
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
        ci_low,
        ci_high,
        unit,
    from metrics
    where
        (ci_low is null) <> (ci_high is null)
        or ci_low > ci_high
        or (ci_low is not null and value is null)

)

select * from misplaced
