"""Contact data put out of sight in the rows of a release."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tasks.foundation.ids import canonical_json
from tasks.foundation.tables import Table
from tasks.foundation.texts.contact_data import hide


def hide_in_rows(kind: Table, rows: pa.Table) -> tuple[pa.Table, Counter[str]]:
    """The rows of a table with the contact data of all their texts hidden, but for keys, names of sources and what
    refers to other rows."""
    counts: Counter[str] = Counter()

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            text, found = hide(value)
            counts.update(found)
            return text
        if isinstance(value, dict):
            return {name: clean(inner) for name, inner in value.items()}
        return [clean(inner) for inner in value] if isinstance(value, list) else value

    def clean_json(text: str | None) -> str | None:
        return None if text is None else canonical_json(clean(json.loads(text)))

    columns = {name: rows[name].to_pylist() for name in rows.column_names}
    for name, values in columns.items():
        if name not in _labels_of(kind):
            how: Callable[[Any], Any] = clean_json if name in kind.json_columns else clean
            columns[name] = [how(value) for value in values]
    return pa.table(columns, schema=rows.schema), counts


def _labels_of(kind: Table) -> set[str]:
    return {*kind.key, "pool", "source", "source_key", "licence", "language"} | {
        name for name in kind.columns if name.endswith("_id")
    }
