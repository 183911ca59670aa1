-- one row per review that proposes a value without an edit, or edits without one
with

reviews as (

    select * from reviews

),

misfits as (

    select
        dialogue_id,
        element,
        annotator,
        action,
        proposed,
    from reviews
    where (proposed is not null) <> (action is not distinct from 'edit')

)

select * from misfits
