-- what waits for a person? one row per label that no majority decided and nobody has reviewed
with

verdicts as (

    select
        dialogue_id,
        element,
        value,
        votes_for,
        votes_cast,
        panel,
    from verdicts
    where pending
    order by dialogue_id, element

)

select * from verdicts
