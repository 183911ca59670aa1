"""A judge scores what the targets have said and understood (DEMO appendix D; EYT-Bench section 3.5.3)."""
