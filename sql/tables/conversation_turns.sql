-- one row per turn
select
    parts.build,
    parts.conversation_id,
    parts.turn_index,
    parts.user_text,
    parts.gold_explicit,
    parts.gold_latent,
    parts.gold_emotion,
    parts.progress,
    parts.predicted_explicit,
    parts.predicted_latent,
    parts.predicted_emotion,
    parts.perception_fault,
    parts.assistant_text,
    parts.label_reasks,
    parts.role_breaks,
    turn_drifts.drift_latent,
    turn_drifts.drift_explicit,
    turn_drifts.drift_pair,
    turn_drifts.final_intent_cosine,
from parts
left join turn_drifts
    on
        parts.build = turn_drifts.build
        and parts.conversation_id = turn_drifts.conversation_id
        and parts.turn_index = turn_drifts.turn_index
