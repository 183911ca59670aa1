"""The registry of tables: each is declared once, beside its row model; Arrow schemas, views and the dictionary follow.

>>> TABLES["scenes"].key
('scene_id',)
"""

from __future__ import annotations

from tasks.foundation.tables import dialogues, evaluation, operations, personas, scenes
from tasks.foundation.tables.types import Row, Table

_AREAS = (personas, scenes, dialogues, evaluation, operations)

TABLES: dict[str, Table] = {table.name: table for area in _AREAS for table in area.TABLES}

EVERY_STAGE: tuple[str, ...] = tuple(table.name for table in operations.TABLES)
"""Tables that every stage writes beside its own."""

__all__ = ["EVERY_STAGE", "TABLES", "Row", "Table"]
