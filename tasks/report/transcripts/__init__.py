"""What was said, with what was decided and judged of it: dialogues, conversations, interactions, predictions.

All of it is data from models and datasets: it goes to the page as text, never as markup. At most `limit` of
each kind are shown; a page says how many there are.
"""

from __future__ import annotations

import duckdb

from tasks.report.transcripts.conversations import conversations
from tasks.report.transcripts.demo import interactions, predictions
from tasks.report.transcripts.dialogues import dialogues
from tasks.report.transcripts.parts import Shelf, shorten

__all__ = ["LIMIT", "Shelf", "shelves", "shorten"]

LIMIT = 100
"""Transcripts of each kind, unless asked otherwise."""


def make_shelves(connection: duckdb.DuckDBPyConnection, limit: int = LIMIT) -> list[Shelf]:
    """Every kind, in the order of the page."""
    return [
        conversations(connection, limit),
        interactions(connection, limit),
        dialogues(connection, limit),
        predictions(connection, limit),
    ]
