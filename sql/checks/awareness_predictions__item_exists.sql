-- one row per prediction of an item that is not there
with

awareness_predictions as (

    select * from awareness_predictions

),

awareness_items as (

    select * from awareness_items

),

orphans as (

    select
        awareness_predictions.item_id,
        awareness_predictions.target,
        awareness_predictions.sample,
    from awareness_predictions
    left join awareness_items on awareness_predictions.item_id = awareness_items.item_id
    where awareness_items.item_id is null

)

select * from orphans
