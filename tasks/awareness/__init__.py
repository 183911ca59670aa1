"""A target model reads a dialogue and names its elements (DEMO section 2.2.1)."""
