-- how are the labels of EYT-Bench spread? one row per pool, kind of label and value: gold, and predicted where asked
with

conversations as (

    select
        conversation_id,
        pool,
    from conversations

),

turns as (

    select
        conversations.pool,
        conversation_turns.*,
    from conversation_turns
    inner join conversations on conversation_turns.conversation_id = conversations.conversation_id

),

labels as (

    select
        pool,
        'explicit' as label,
        gold_explicit as found,
        true as is_gold,
    from turns
    union all
    select
        pool,
        'explicit' as label,
        predicted_explicit as found,
        false as is_gold,
    from turns
    where perception_fault is null
    union all
    select
        pool,
        'latent' as label,
        gold_latent as found,
        true as is_gold,
    from turns
    union all
    select
        pool,
        'latent' as label,
        predicted_latent as found,
        false as is_gold,
    from turns
    where perception_fault is null
    union all
    select
        pool,
        'emotion' as label,
        gold_emotion as found,
        true as is_gold,
    from turns
    union all
    select
        pool,
        'emotion' as label,
        predicted_emotion as found,
        false as is_gold,
    from turns
    where perception_fault is null

),

counted as (

    select
        pool,
        label,
        coalesce(found, '(unreadable)') as found,
        count(*) filter (where is_gold) as gold,
        count(*) filter (where not is_gold) as predicted,
    from labels
    group by pool, label, found

),

shares as (

    select
        pool,
        label,
        found,
        gold,
        predicted,
        round(100.0 * gold / sum(gold) over (partition by pool, label), 1) as gold_percent,
        round(100.0 * predicted / sum(predicted) over (partition by pool, label), 1) as predicted_percent,
    from counted
    order by pool asc, label asc, gold desc, found asc

)

select * from shares
