-- what was scored worst? one row per thing that was judged and has a score, worst first: the mean of all judges'
-- scores in all dimensions, on 0 to 1
with

scores as (

    select * from scores_given()

),

worst as (

    select
        kind,
        target,
        conversation_id,
        turn_index,
        interaction_id,
        item_id,
        sample,
        avg(score) as mean_score,
        count(distinct judge) as judges,
        count(*) - count(score) as n_unscored,
    from scores
    group by kind, target, conversation_id, turn_index, interaction_id, item_id, sample
    having count(score) > 0
    order by
        mean_score asc, kind asc, conversation_id asc, turn_index asc, interaction_id asc, item_id asc, target asc,
        sample asc

)

select * from worst
