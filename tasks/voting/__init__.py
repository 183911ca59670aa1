"""Annotators of different model families review every label; disputed ones go to a vote (DEMO, quality control)."""
