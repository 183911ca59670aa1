"""A first stage for tests: items → pairings, no model."""
