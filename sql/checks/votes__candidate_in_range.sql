-- one row per vote for a candidate that was not on the ballot
with

votes as (

    select * from votes

),

off_ballot as (

    select
        dialogue_id,
        element,
        voter,
        candidate,
        json_array_length(candidates) as on_ballot,
    from votes
    where candidate is not null and candidate not between 0 and json_array_length(candidates) - 1

)

select * from off_ballot
