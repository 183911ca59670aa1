-- which labels were disputed most? one row per label that was voted on, the smallest share of votes first
with

verdicts as (

    select * from verdicts
    where panel is not null

),

reviews as (

    select
        dialogue_id,
        element,
        count(*) filter (where action <> 'keep') as objections,
        count(*) as reviews,
    from reviews
    group by dialogue_id, element

),

disputed as (

    select
        verdicts.dialogue_id,
        verdicts.element,
        verdicts.outcome,
        verdicts.votes_for,
        verdicts.votes_cast,
        verdicts.panel,
        round(100.0 * verdicts.votes_for / verdicts.panel, 1) as votes_percent,
        coalesce(reviews.objections, 0) as objections,
        coalesce(reviews.reviews, 0) as reviews,
        verdicts.changed,
        verdicts.pending,
    from verdicts
    left join reviews on verdicts.dialogue_id = reviews.dialogue_id and verdicts.element = reviews.element

),

most_first as (

    select * from disputed
    order by votes_percent asc, objections desc, dialogue_id asc, element asc

)

select * from most_first
