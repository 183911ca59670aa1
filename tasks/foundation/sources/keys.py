"""Reject keys of source rows: a file name and a line, made distinct where two sources share a file name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tasks.foundation.tables.operations import Reject


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
