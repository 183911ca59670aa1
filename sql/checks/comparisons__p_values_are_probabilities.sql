-- one row per comparison whose p is none, or smaller after the correction than before it
with

comparisons as (

    select * from comparisons

),

improbable as (

    select
        benchmark,
        metric,
        target_a,
        target_b,
        p,
        p_holm,
    from comparisons
    where
        p not between 0 and 1
        or p_holm not between 0 and 1
        or p_holm < p

)

select * from improbable
