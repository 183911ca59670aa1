-- one row per seed, target and sample
select
    build,
    conversation_id,
    chat_seed_id,
    pool,
    target,
    simulator,
    sample,
    persona_to_target,
    protocol,
    t_actual,
    stop_reason,
    fault,
    final_user_text,
    final_progress,
    final_label_reasks,
    final_role_breaks,
from parts
