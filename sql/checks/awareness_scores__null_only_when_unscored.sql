-- one row per judgement with a score and a reason why there is none, or with neither
with

awareness_scores as (

    select * from awareness_scores

),

half_scored as (

    select
        item_id,
        target,
        sample,
        judge,
        accuracy,
        hallucination,
        unscored_kind,
    from awareness_scores
    where
        (accuracy is null) <> (unscored_kind is not null)
        or (hallucination is null) <> (unscored_kind is not null)

)

select * from half_scored
