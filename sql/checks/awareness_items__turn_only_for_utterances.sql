-- one row per item that names a turn without asking about an utterance, or asks without naming one
with

awareness_items as (

    select * from awareness_items

),

misfits as (

    select
        item_id,
        task,
        turn_index,
        utterance_text,
    from awareness_items
    where
        (task <> 'utterance' and turn_index is not null)
        or (task = 'utterance' and turn_index is null and source = 'build')
        or (task = 'utterance') <> (utterance_text is not null)

)

select * from misfits
