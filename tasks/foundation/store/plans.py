"""The shard plan: which rows a run deals to which shard, written first and obeyed by every resume."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.foundation.errors import StoreError
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.store.durable import write_text


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """Row keys by shard, and where the rows that are no items ended. `started_at` is UTC, ISO 8601."""

    shards: tuple[tuple[str, ...], ...]
    prepared: Accounting
    started_at: str

    @property
    def n_items(self) -> int:
        return sum(len(keys) for keys in self.shards)


MOST_SHARDS = 256
"""Each shard is a task of Prefect's, whose server is at ease with hundreds and not with thousands."""


def deal(items: Sequence[str], shard_rows: int) -> tuple[tuple[str, ...], ...]:
    """Items in order, `shard_rows` a shard, more where that would make too many shards.

    StoreError when an item is named twice.
    """
    if len(set(items)) != len(items):
        twice = sorted(item for item, count in Counter(items).items() if count > 1)[:3]
        raise StoreError(f"row keys must be unique within a stage, found twice: {', '.join(twice)}")
    shard_rows = max(shard_rows, math.ceil(len(items) / MOST_SHARDS))
    return tuple(tuple(items[start : start + shard_rows]) for start in range(0, len(items), shard_rows))


def write_plan(path: Path, scratch: Path, plan: ShardPlan) -> None:
    plain: dict[str, Any] = {
        "shards": plan.shards,
        "prepared": plan.prepared.to_json(),
        "started_at": plan.started_at,
    }
    write_text(path, scratch, json.dumps(plain, ensure_ascii=False))


def read_plan(path: Path) -> ShardPlan | None:
    """The plan of a run that began earlier; None when none did."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        shards = tuple(tuple(keys) for keys in plain["shards"])
        return ShardPlan(shards, Accounting.from_json(plain["prepared"]), plain["started_at"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"shard plan {path} cannot be read ({error}); delete it to begin the stage afresh") from None
