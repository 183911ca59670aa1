-- one row per verdict without a value that is not a rejection, or a rejection with one
with

verdicts as (

    select * from verdicts

),

misfits as (

    select
        dialogue_id,
        element,
        outcome,
        value,
    from verdicts
    where (value is null) <> (outcome = 'rejected')

)

select * from misfits
