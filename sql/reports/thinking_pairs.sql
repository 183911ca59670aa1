-- does thinking help? one row per metric and model with both switches: values over all, difference over what both did
with

metrics as (

    select
        benchmark,
        coalesce(pool, 'all') as pool,
        target,
        metric,
        value,
        unit,
    from metrics
    where
        target is not null
        and coalesce(language, simulator, judge, partner, goal_type, slice) is null

),

comparisons as (

    select
        benchmark,
        coalesce(pool, 'all') as pool,
        metric,
        target_a as thinking,
        target_b as plain,
        difference,
        ci_low,
        ci_high,
        p_holm,
        n,
    from comparisons
    where
        kind = 'thinking'
        and language is null

),

pairs as (

    select
        comparisons.benchmark,
        comparisons.pool,
        comparisons.metric,
        comparisons.thinking,
        comparisons.plain,
        with_thinking.value as value_thinking,
        without.value as value_plain,
        comparisons.difference,
        comparisons.ci_low as difference_low,
        comparisons.ci_high as difference_high,
        comparisons.p_holm,
        comparisons.n,
        with_thinking.unit,
    from comparisons
    left join metrics as with_thinking
        on
            comparisons.benchmark = with_thinking.benchmark
            and comparisons.pool = with_thinking.pool
            and comparisons.metric = with_thinking.metric
            and comparisons.thinking = with_thinking.target
    left join metrics as without
        on
            comparisons.benchmark = without.benchmark
            and comparisons.pool = without.pool
            and comparisons.metric = without.metric
            and comparisons.plain = without.target
    order by comparisons.benchmark, comparisons.pool, comparisons.metric, comparisons.thinking

)

select * from pairs
