-- who beats whom on the primary metrics? one row per benchmark, pool, language, metric and pair of targets: the first
-- less the second on what both have done
with

comparisons as (

    select * from comparisons

),

pairs as (

    select
        benchmark,
        coalesce(pool, 'all') as pool,
        coalesce(language, 'all') as language,
        metric,
        target_a,
        target_b,
        difference,
        ci_low as difference_low,
        ci_high as difference_high,
        p_holm,
        n,
    from comparisons
    where kind = 'pairs'
    order by benchmark, pool, language, metric, target_a, target_b

)

select * from pairs
