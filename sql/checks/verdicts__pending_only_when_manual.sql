-- one row per label that waits for people although the panel decided it
with

verdicts as (

    select * from verdicts

),

misfits as (

    select
        dialogue_id,
        element,
        outcome,
        pending,
    from verdicts
    where pending and outcome <> 'manual'

)

select * from misfits
