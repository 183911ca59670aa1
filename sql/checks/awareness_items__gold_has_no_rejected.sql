-- one row per rejected label that is in the gold of an item all the same
with

awareness_items as (

    select * from awareness_items

),

rejected as (

    select
        dialogue_id,
        element,
        split_part(element, '.', 1) as task,
        split_part(element, '.', -1) as name,
        split_part(element, '.', 2) as number,
    from verdicts
    where outcome = 'rejected'

),

places as (

    select
        dialogue_id,
        element,
        task,
        if(task = 'utterance', try_cast(number as integer), null) as turn_index,
        case task
            when 'persona' then '$.persona.participant' || number || '.' || name
            when 'utterance' then '$.' || name
            else '$.' || task || '.' || name
        end as place,
    from rejected

),

leaked as (

    select
        awareness_items.item_id,
        awareness_items.dialogue_id,
        places.element,
    from awareness_items
    inner join places
        on
            awareness_items.dialogue_id = places.dialogue_id
            and awareness_items.task = places.task
            and awareness_items.turn_index is not distinct from places.turn_index
    where json_exists(awareness_items.gold, places.place)

)

select * from leaked
