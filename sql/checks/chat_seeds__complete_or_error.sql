-- one row per seed that lacks something without an error, or has content in spite of one
with

chat_seeds as (

    select * from chat_seeds

),

half_made as (

    select
        chat_seed_id,
        error,
    from chat_seeds
    where
        (topic is null) <> (error is not null)
        or (initial_emotion is null) <> (error is not null)
        or (initial_explicit_intent is null) <> (error is not null)
        or (initial_latent_intent is null) <> (error is not null)
        or (final_intent is null) <> (error is not null)
        or (first_query is null) <> (error is not null)

)

select * from half_made
