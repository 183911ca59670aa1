-- how far each target drifted: one row per conversation that is not void, the mean over its turns (null: none measured)
create macro drift() as table
    select
        conversations.conversation_id,
        conversations.target,
        conversations.pool,
        chat_seeds.language,
        avg(turn_drifts.drift_latent) as drift_latent,
        avg(turn_drifts.drift_explicit) as drift_explicit,
        avg(turn_drifts.drift_pair) as drift_pair,
    from conversations
    inner join chat_seeds on conversations.chat_seed_id = chat_seeds.chat_seed_id
    inner join turn_drifts on conversations.conversation_id = turn_drifts.conversation_id
    where conversations.fault not in ('infra', 'simulator')
    group by all
