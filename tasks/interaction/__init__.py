"""A target model talks towards a goal, with itself or with a partner (DEMO section 2.2.2)."""
