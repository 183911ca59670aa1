-- where do judges differ most? one row per judged thing and dimension that several judges scored, the widest gap first;
-- scores are on 0 to 1
with

scores as (

    select * from scores_given()
    where score is not null

),

gaps as (

    select
        kind,
        dimension,
        target,
        conversation_id,
        turn_index,
        interaction_id,
        item_id,
        sample,
        max(score) - min(score) as gap,
        arg_min(judge, score) as lowest_by,
        min(score) as lowest,
        arg_max(judge, score) as highest_by,
        max(score) as highest,
        count(*) as judges,
    from scores
    group by kind, dimension, target, conversation_id, turn_index, interaction_id, item_id, sample
    having count(*) > 1
    order by
        gap desc, kind asc, dimension asc, conversation_id asc, turn_index asc, interaction_id asc, item_id asc,
        target asc, sample asc

)

select * from gaps
