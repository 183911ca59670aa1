"""Goal and scene distillation: seed dialogues read, filtered and sampled, goals and scenes drawn from them."""
