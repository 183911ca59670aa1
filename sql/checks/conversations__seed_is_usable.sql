-- one row per conversation whose seed is not there, has an error, or is of another pool
with

conversations as (

    select * from conversations

),

chat_seeds as (

    select * from chat_seeds

),

unfounded as (

    select
        conversations.conversation_id,
        conversations.chat_seed_id,
        conversations.pool,
        chat_seeds.pool as pool_of_seed,
        chat_seeds.error,
    from conversations
    left join chat_seeds on conversations.chat_seed_id = chat_seeds.chat_seed_id
    where
        chat_seeds.chat_seed_id is null
        or chat_seeds.error is not null
        or chat_seeds.pool <> conversations.pool

)

select * from unfounded
