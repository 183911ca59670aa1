-- one row per repeated vote without its first one
with

vote_repeats as (

    select * from vote_repeats

),

votes as (

    select * from votes

),

without_vote as (

    select
        vote_repeats.dialogue_id,
        vote_repeats.element,
        vote_repeats.voter,
    from vote_repeats
    anti join votes
        on
            vote_repeats.dialogue_id = votes.dialogue_id
            and vote_repeats.element = votes.element
            and vote_repeats.voter = votes.voter

)

select * from without_vote
