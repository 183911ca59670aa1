"""A benchmark handed on, and taken in: the frozen items, episodes and seeds of a build as files that stand alone."""

ITEMS = {"demo": frozenset({"awareness_items", "interaction_episodes"}), "eyt": frozenset({"chat_seeds"})}
"""By benchmark: the tables that hold what is asked in it."""
