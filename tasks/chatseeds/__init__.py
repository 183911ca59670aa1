"""Personas become the starting points of conversations (EYT-Bench section 3.3)."""
