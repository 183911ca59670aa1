-- one row per persona of a pool
select
    build,
    chat_seed_id,
    pool,
    rank,
    persona_id,
    language,
    topic,
    initial_emotion,
    initial_explicit_intent,
    initial_latent_intent,
    final_intent,
    first_query,
    error,
from parts
