-- one row per comparison of a descriptive metric (or of head to head) with a corrected p, and of a tested one without
-- one beside its p, or with one that is below the least there can be
with

comparisons as (

    select
        *,
        is_primary and kind <> 'pairs' as is_tested,
    from comparisons

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
        (not is_tested and coalesce(p_holm, p_holm_least) is not null)
        or (is_tested and (p is null) <> (p_holm is null))
        or (is_tested and p_holm_least is null)
        or p_holm < p_holm_least - 1e-9

)

select * from miscorrected
