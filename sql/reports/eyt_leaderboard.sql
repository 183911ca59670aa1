-- how do the targets score on EYT-Bench? one row per pool, language, target and metric, with its distance from the best
with

metrics as (

    select
        coalesce(pool, 'all') as pool,
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
        units,
        units_void,
        worst_low,
        worst_high,
        absent_judges,
        widened,
        unit,
    from metrics
    where
        benchmark = 'eyt'
        and target is not null
        and coalesce(simulator, judge, partner, goal_type, slice) is null

),

comparisons as (

    select
        coalesce(pool, 'all') as pool,
        coalesce(language, 'all') as language,
        metric,
        target_a as best,
        target_b as target,
        difference,
        ci_low,
        ci_high,
        p,
        p_holm,
        p_holm_least,
        is_reversed,
        judges,
    from comparisons
    where
        kind = 'best'
        and benchmark = 'eyt'

),

ranks as (

    select
        coalesce(pool, 'all') as pool,
        coalesce(language, 'all') as language,
        metric,
        target,
        rank,
        rank_low,
        rank_high,
        may_be_best,
        is_primary,
        n_targets,
    from ranks
    where benchmark = 'eyt'

),

primary_metrics as (

    select distinct metric
    from ranks
    where is_primary

),

best as (

    select distinct
        pool,
        language,
        metric,
        best as target,
    from comparisons

),

ahead_of_best as (

    select
        pool,
        language,
        metric,
        best as target,
        string_agg(target, ', ' order by target) as is_behind,
    from comparisons
    where is_reversed
    group by pool, language, metric, best

),

compared as (

    select distinct
        pool,
        language,
        metric,
    from comparisons

),

leaderboard as (

    select
        metrics.pool,
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
        metrics.units,
        metrics.units_void,
        metrics.worst_low,
        metrics.worst_high,
        nullif(array_to_string(metrics.absent_judges, ', '), '') as absent_judges,
        metrics.widened,
        metrics.unit,
        case when compared.metric is not null then best.target is not null end as is_best,
        comparisons.difference as best_minus_this,
        comparisons.ci_low as difference_low,
        comparisons.ci_high as difference_high,
        comparisons.p_holm,
        comparisons.p_holm_least,
        nullif(array_to_string(comparisons.judges, ', '), '') as compared_by_judges,
        ahead_of_best.is_behind as behind_on_common,
        primary_metrics.metric is not null as is_primary,
        ranks.rank,
        ranks.rank_low,
        ranks.rank_high,
        ranks.n_targets as ranked_among,
        ranks.may_be_best and ranks.n_targets > 1 as may_equal_best,
        compared.metric is not null
        and best.target is null
        and metrics.value is not null
        and comparisons.p is null as is_not_compared,
    from metrics
    left join best
        on
            metrics.pool = best.pool
            and metrics.language = best.language
            and metrics.metric = best.metric
            and metrics.target = best.target
    left join ahead_of_best
        on
            metrics.pool = ahead_of_best.pool
            and metrics.language = ahead_of_best.language
            and metrics.metric = ahead_of_best.metric
            and metrics.target = ahead_of_best.target
    left join primary_metrics on metrics.metric = primary_metrics.metric
    left join ranks
        on
            metrics.pool = ranks.pool
            and metrics.language = ranks.language
            and metrics.metric = ranks.metric
            and metrics.target = ranks.target
    left join compared
        on
            metrics.pool = compared.pool
            and metrics.language = compared.language
            and metrics.metric = compared.metric
    left join comparisons
        on
            metrics.pool = comparisons.pool
            and metrics.language = comparisons.language
            and metrics.metric = comparisons.metric
            and metrics.target = comparisons.target
    order by metrics.pool, metrics.language, metrics.metric, metrics.target

)

select * from leaderboard
