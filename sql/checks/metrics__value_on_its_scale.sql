-- one row per metric whose value lies outside the scale of its unit
with

metrics as (

    select * from metrics

),

off_scale as (

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
        (unit = '0-10' and value not between 0 and 10)
        or (unit = '0-20' and value not between 0 and 20)
        or (unit = '0-100' and value not between 0 and 100)
        or (unit = 'share' and value not between 0 and 1)
        or (unit = 'cosine' and value not between 0 and 2)
        or (unit in ('rho', 'tau') and value not between -1 and 1)

)

select * from off_scale
