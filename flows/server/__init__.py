"""Prefect's server and what it needs to run us."""
