-- one row per comparison of a descriptive metric with a corrected p, and of a primary one without one beside its p, or
-- with one that is below the least there can be
with

comparisons as (

    select * from comparisons

),

miscorrected as (

    select
        kind,
        benchmark,
        metric,
        target_a,
        target_b,
        p,
        p_holm,
        p_holm_least,
        is_primary,
    from comparisons
    where
        (not is_primary and coalesce(p_holm, p_holm_least) is not null)
        or (is_primary and (p is null) <> (p_holm is null))
        or (is_primary and p_holm_least is null)
        or p_holm < p_holm_least - 1e-9

)

select * from miscorrected
