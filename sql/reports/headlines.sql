-- what are the headline scores? one row per benchmark, pool, target and headline metric, over all languages and judges
with

metrics as (

    select * from metrics

),

headlines as (

    select
        benchmark,
        coalesce(pool, 'all') as pool,
        target,
        metric,
        round(value, 3) as value,
        round(ci_low, 3) as ci_low,
        round(ci_high, 3) as ci_high,
        n,
        n_unit,
        n_unscored,
        n_fault,
        units,
        units_void,
        round(worst_low, 3) as worst_low,
        round(worst_high, 3) as worst_high,
        nullif(array_to_string(absent_judges, ', '), '') as absent_judges,
        unit,
    from metrics
    where
        target is not null
        and coalesce(language, simulator, judge, partner, goal_type, slice) is null
        and (
            (benchmark = 'demo' and metric in (
                'goal', 'persona', 'scene', 'utterance', 'awareness', 'interaction', 'overall_pooled', 'overall_mean'
            ))
            or (benchmark = 'eyt' and pool is not null and metric in (
                'explicit_accuracy', 'latent_accuracy', 'emotion_accuracy', 'drift_latent', 'ficr', 'satisfaction',
                'empathy_weighted', 'persona_alignment_weighted', 'anthropomorphic_weighted'
            ))
        )
    order by benchmark, pool, target, metric

)

select * from headlines
