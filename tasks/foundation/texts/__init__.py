"""Texts compared: encoded, searched for near-duplicates, told by their language."""
