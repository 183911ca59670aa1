"""Reject keys of source rows: a file name and a line, made distinct where two sources share a file name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tasks.foundation.tables.operations import Reject


@dataclass
class RejectKeys:
    """Keys over all sources of a stage, given out as rows come."""

    _readers: dict[str, list[str]] = field(default_factory=dict)

    def key(self, source: str, where: str) -> str:
        """`where` itself for the first source that reads a file of this name, with "#2" after it for the second.

        >>> keys = RejectKeys()
        >>> keys.key("a", "rows.jsonl:3"), keys.key("b", "rows.jsonl:3"), keys.key("a", "rows.jsonl:4")
        ('rows.jsonl:3', 'rows.jsonl:3#2', 'rows.jsonl:4')
        """
        readers = self._readers.setdefault(where.rpartition(":")[0], [])
        if source not in readers:
            readers.append(source)
        number = readers.index(source) + 1
        return where if number == 1 else f"{where}#{number}"


def with_distinct_keys(rejects: Iterable[Reject]) -> list[Reject]:
    """The same rejects; the second of one key and kind has "#2" after its key, and so on."""
    times: Counter[tuple[str, str]] = Counter()
    distinct = []
    for reject in rejects:
        key = (reject.row_key, reject.kind)
        times[key] += 1
        changed = {"row_key": f"{reject.row_key}#{times[key]}"} if times[key] > 1 else {}
        distinct.append(reject.model_copy(update=changed))
    return distinct
