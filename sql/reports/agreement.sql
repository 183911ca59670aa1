-- who agrees with whom? one row per scope, category, statistic and raters
with

agreement as (

    select * from agreement

),

in_order as (

    select
        scope,
        category,
        statistic,
        raters,
        value,
        ci_low,
        ci_high,
        n,
    from agreement
    order by scope, category, statistic, raters

)

select * from in_order
