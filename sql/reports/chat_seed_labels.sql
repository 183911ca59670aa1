-- how do the chats begin? one row per pool, label and value of its usable chat seeds, as in EYT-Bench figure 4
with

seeds as (

    select
        chat_seeds.pool,
        chat_seeds.initial_emotion,
        chat_seeds.initial_latent_intent,
        chat_seeds.initial_explicit_intent,
        persona_candidates.topic_tags[1] as first_topic,
    from chat_seeds
    left join persona_candidates
        on
            chat_seeds.pool = persona_candidates.pool
            and chat_seeds.persona_id = persona_candidates.persona_id
    where chat_seeds.error is null

),

labels as (

    select
        pool,
        'emotion' as label,
        initial_emotion as found,
    from seeds
    union all
    select
        pool,
        'latent' as label,
        initial_latent_intent as found,
    from seeds
    union all
    select
        pool,
        'explicit' as label,
        initial_explicit_intent as found,
    from seeds
    union all
    select
        pool,
        'first_topic' as label,
        first_topic as found,
    from seeds

),

counted as (

    select
        pool,
        label,
        found,
        count(*) as seeds,
    from labels
    where found is not null
    group by pool, label, found

),

shares as (

    select
        pool,
        label,
        found,
        seeds,
        sum(seeds) over (partition by pool, label) as n,
        round(100.0 * seeds / sum(seeds) over (partition by pool, label), 1) as percent,
    from counted
    order by label asc, pool asc, seeds desc, found asc

)

select * from shares
