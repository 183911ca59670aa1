"""Scenes meet characters; only pairings that hold together go on (DEMO section 3.2, conflict assessment)."""
