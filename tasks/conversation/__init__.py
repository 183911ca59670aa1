"""A simulated user talks with a model under test (EYT-Bench section 3.4, Algorithm 1)."""
