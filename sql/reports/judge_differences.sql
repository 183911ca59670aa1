-- do judges differ on the same judgements? one row per benchmark, pool, target, metric and two judges
with

comparisons as (

    select * from comparisons

),

differences as (

    select
        benchmark,
        coalesce(pool, 'all') as pool,
        target_a as target,
        metric,
        judge_a,
        judge_b,
        difference,
        ci_low,
        ci_high,
        p_holm,
        n,
    from comparisons
    where
        kind = 'judges'
        and language is null
    order by benchmark, pool, metric, target, judge_a, judge_b

)

select * from differences
