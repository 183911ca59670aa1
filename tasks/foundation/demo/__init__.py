"""What DEMO labels in a dialogue, and a dialogue with everything that was decided before it."""
