"""A second stage for tests: pairings → a topic each, asked of a scripted model."""
