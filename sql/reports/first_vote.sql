-- how is a disputed label voted on? one row per vote on the label with the most votes
with

votes as (

    select * from votes

),

verdicts as (

    select * from verdicts

),

disputed as (

    select
        dialogue_id,
        element,
        count(*) as n_votes,
    from votes
    group by dialogue_id, element
    order by n_votes desc, dialogue_id asc, element asc
    limit 1

),

cast_votes as (

    select
        disputed.dialogue_id,
        disputed.element,
        votes.voter,
        votes.candidates,
        votes.candidate,
        votes.reason,
        verdicts.outcome,
        verdicts.value,
    from disputed
    inner join votes on disputed.dialogue_id = votes.dialogue_id and disputed.element = votes.element
    left join verdicts on disputed.dialogue_id = verdicts.dialogue_id and disputed.element = verdicts.element
    order by votes.voter

)

select * from cast_votes
