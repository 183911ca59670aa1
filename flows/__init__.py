"""Orchestration only: order, parameters, concurrency."""
