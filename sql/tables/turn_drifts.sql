-- one row per turn, once metrics has run
select
    build,
    conversation_id,
    turn_index,
    drift_latent,
    drift_explicit,
    drift_pair,
    final_intent_cosine,
from parts
