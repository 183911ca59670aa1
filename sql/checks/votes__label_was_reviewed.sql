-- one row per vote on a label that nobody reviewed
with

votes as (

    select * from votes

),

reviews as (

    select * from reviews

),

unreviewed as (

    select
        votes.dialogue_id,
        votes.element,
        votes.voter,
    from votes
    anti join reviews
        on
            votes.dialogue_id = reviews.dialogue_id
            and votes.element = reviews.element

)

select * from unreviewed
