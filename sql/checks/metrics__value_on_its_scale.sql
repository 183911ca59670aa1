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
        (unit = '0-10' and value not between -1e-9 and 10 + 1e-9)
        or (unit = '0-20' and value not between -1e-9 and 20 + 1e-9)
        or (unit = '0-100' and value not between -1e-9 and 100 + 1e-9)
        or (unit = 'share' and value not between -1e-9 and 1 + 1e-9)
        or (unit = 'cosine' and value not between -1e-9 and 2 + 1e-9)
        or (unit in ('rho', 'tau') and value not between -1 - 1e-9 and 1 + 1e-9)

)

select * from off_scale
