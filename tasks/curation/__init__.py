"""Verified labels become the benchmark: element awareness items and interaction episodes (DEMO section 3.1)."""
