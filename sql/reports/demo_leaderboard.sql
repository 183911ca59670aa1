-- how do the targets score on DEMO? one row per language, target and metric, with its distance behind the best
with

metrics as (

    select
        coalesce(language, 'all') as language,
        target,
        metric,
        value,
        ci_low,
        ci_high,
        n,
        n_unit,
        n_unscored,
        n_fault,
        unit,
    from metrics
    where
        benchmark = 'demo'
        and target is not null
        and coalesce(simulator, judge, partner, goal_type, slice) is null

),

comparisons as (

    select
        coalesce(language, 'all') as language,
        metric,
        target_a as best,
        target_b as target,
        difference,
        ci_low,
        ci_high,
        p_holm,
    from comparisons
    where
        kind = 'best'
        and benchmark = 'demo'

),

best as (

    select
        language,
        metric,
        any_value(best order by best) as target,
    from comparisons
    group by language, metric

),

leaderboard as (

    select
        metrics.language,
        metrics.target,
        metrics.metric,
        metrics.value,
        metrics.ci_low,
        metrics.ci_high,
        metrics.n,
        metrics.n_unit,
        metrics.n_unscored,
        metrics.n_fault,
        metrics.unit,
        best.target = metrics.target as is_best,
        comparisons.difference as best_minus_this,
        comparisons.ci_low as difference_low,
        comparisons.ci_high as difference_high,
        comparisons.p_holm,
        comparisons.ci_low <= 0 and comparisons.ci_high >= 0 as may_equal_best,
    from metrics
    left join best
        on
            metrics.language = best.language
            and metrics.metric = best.metric
    left join comparisons
        on
            metrics.language = comparisons.language
            and metrics.metric = comparisons.metric
            and metrics.target = comparisons.target
    order by metrics.language, metrics.metric, metrics.target

)

select * from leaderboard
