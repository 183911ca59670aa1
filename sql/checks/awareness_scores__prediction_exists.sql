-- one row per score of a prediction that is not there
with

awareness_scores as (

    select * from awareness_scores

),

awareness_predictions as (

    select * from awareness_predictions

),

orphans as (

    select
        awareness_scores.item_id,
        awareness_scores.target,
        awareness_scores.sample,
        awareness_scores.judge,
    from awareness_scores
    left join awareness_predictions
        on
            awareness_scores.item_id = awareness_predictions.item_id
            and awareness_scores.target = awareness_predictions.target
            and awareness_scores.sample = awareness_predictions.sample
    where awareness_predictions.item_id is null

)

select * from orphans
