"""The parts of one stage run: where each lies, whether it is there, what is in it; and the shard plan, which is written
first and obeyed by every resume.

A run that completes a partial commit builds on that commit's parts: a shard it does not touch keeps its
file, a shard it redoes gets a new file under the new revision. Committed files are never written again.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tasks.foundation.errors import StoreError, TableError
from tasks.foundation.run.context import declared
from tasks.foundation.stage import PreparedRows, Stage
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.store.commits import Commit
from tasks.foundation.store.files import remove_file, write_text
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import (
    PartFile,
    PartWriter,
    describe_part,
    open_part,
    part_facts,
    read_part,
    rows_in,
    write_part,
)
from tasks.foundation.tables import EVERY_STAGE, TABLES, Row, Table

PREPARE, FINISH = "prepare", "finish"
Shard = Mapping[str, Path]
"""A finished shard: the path of its part by table."""


MOST_SHARDS = 256
"""Each shard is a task of Prefect's, whose server is at ease with hundreds and not with thousands."""


def label_of(shard: int) -> str:
    """The label of a shard's parts: its number, five digits."""
    return f"{shard:05d}"


def round_label(number: int) -> str:
    """The label of the parts of a round that was drawn on: its number from 1, after `draw`."""
    return f"draw{number:03d}"


@dataclass(frozen=True, slots=True)
class RunFiles:
    """`completes` is the partial commit whose finished rows this run builds on; None: it makes all itself. `rounds`:
    how many were drawn on."""

    layout: Layout
    stage: Stage
    build: str
    fingerprint: str
    revision: int
    completes: Commit | None
    rounds: int = 0

    @property
    def worked(self) -> tuple[str, ...]:
        """Tables that every shard writes a part of."""
        return (*self.stage.worked, *EVERY_STAGE)

    def write_step(self, label: str, tables: Sequence[str], rows: PreparedRows) -> None:
        """One part a table, empty ones too, unless the step has stored it; TableError for an undeclared table."""
        self._refuse_undeclared(f"step {label}", tables, rows)
        for name in dict.fromkeys(tables):
            table, some = declared(self.stage, name), rows.get(name, ())
            if isinstance(some, Sequence):
                write_part(self.layout, self._path(name, label), table, table.arrow(some), {})

    def writer(self, table: str) -> AbstractContextManager[PartWriter]:
        """Writes the part of a table that `prepare` makes, in batches; TableError for an undeclared table."""
        self._refuse_undeclared(f"step {PREPARE}", (*self.stage.prepared, "rejects"), {table: ()})
        return open_part(self.layout, self._path(table, PREPARE), declared(self.stage, table))

    def write_shard(self, label: str, rows: Mapping[str, Sequence[Row]], n_produced: int, base: Shard | None) -> None:
        """The shard's parts: `rows`, after what `base` (an earlier attempt) had beside its passing failures.

        Where the attempt was this run's own, its parts are written over. The last of them goes first, so that the
        shard counts as not done until all are new: after a kill in between it is worked on from the start.
        """
        self._refuse_undeclared("work", self.worked, rows)
        produced = n_produced + (produced_in(base) if base else 0)
        kept = self._kept(base)
        last = self._path(self.worked[-1], label)
        if last.exists():
            remove_file(last)
        for name in self.worked:
            table = declared(self.stage, name)
            new = table.arrow(rows.get(name, ()))
            whole = pa.concat_tables([kept[name], new]) if name in kept else new
            write_part(self.layout, self._path(name, label), table, whole, {"n_produced": str(produced)})

    def shard(self, label: str) -> Shard | None:
        """The shard's parts as finished by this run, else by the commit it completes, else None."""
        own = {name: self._path(name, label) for name in self.worked}
        if all(rows_in(path) is not None for path in own.values()):
            return own
        earlier = {name: path for name in self.worked if (path := self._earlier(name, label)) is not None}
        return earlier if len(earlier) == len(own) else None

    def finished_shard(self, label: str) -> Shard:
        """As `shard`; TableError when it is not there (work comes before commit)."""
        shard = self.shard(label)
        if shard is None:
            raise TableError(f"stage {self.stage.name}: shard {label} of build {self.build} has not been worked on")
        return shard

    def made(self, table: str, labels: Sequence[str]) -> list[str]:
        """Paths (relative to the artifacts folder) of what there is of a table so far."""
        paths = [self._step_path(table, label) for label in self._steps_of(table)]
        if table in self.stage.worked:
            paths += [shard[table] for label in labels if (shard := self.shard(label))]
        return [self.layout.relative(path) for path in paths if path.exists()]

    def parts(self, table: str, labels: Sequence[str]) -> tuple[PartFile, ...]:
        """What a commit lists of a table: the part of each step and shard that writes it."""
        kind = declared(self.stage, table)
        return tuple(self._described(kind, label, path) for label, path in self._committed(table, labels))

    def _described(self, kind: Table, label: str, path: Path) -> PartFile:
        """TableError for a part that cannot be read; it is removed, if it is this run's own, and so made again."""
        try:
            return describe_part(self.layout, path, kind, label)
        except TableError as error:
            if path != self._path(kind.name, label) or not path.exists():
                raise
            remove_file(path)
            raise TableError(f"{error}. It was removed: the same command makes it again (replies are kept)") from None

    def has_prepared(self) -> bool:
        """Whether all that the first step makes is there."""
        return all(rows_in(self._step_path(table, PREPARE)) is not None for table in (*self.stage.prepared, "rejects"))

    def has_round(self, number: int) -> bool:
        """Whether the rows of a round are there."""
        label = round_label(number)
        return all(rows_in(self._step_path(table, label)) is not None for table in self.stage.prepared)

    def read(self, path: Path | str, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        return read_part(self.layout.root / path, declared(self.stage, table), columns)

    def _committed(self, table: str, labels: Sequence[str]) -> Iterator[tuple[str, Path]]:
        for label in self._steps_of(table):
            yield label, self._step_path(table, label)
        if table in self.worked:
            for label in labels:
                yield label, self.finished_shard(label)[table]
        if table in self.stage.finished:
            yield FINISH, self._path(table, FINISH)

    def _path(self, table: str, label: str) -> Path:
        folder = table if table in TABLES else f"_{self.stage.name}_{table}"
        return self.layout.part(folder, self.build, self.fingerprint, label, self.revision)

    def _steps_of(self, table: str) -> list[str]:
        """The labels under which `prepare` and the rounds write a table."""
        if table in self.stage.prepared:
            return [PREPARE, *map(round_label, range(1, self.rounds + 1))]
        return [PREPARE] if table == "rejects" else []

    def _step_path(self, table: str, label: str) -> Path:
        """The part that `prepare` or a round wrote, in this run or the one it completes."""
        return self._earlier(table, label) or self._path(table, label)

    def _earlier(self, table: str, label: str) -> Path | None:
        if self.completes is None:
            return None
        parts = (*self.completes.tables.get(table, ()), *self.completes.drafts.get(table, ()))
        return next((self.layout.root / part.path for part in parts if part.label == label), None)

    def _kept(self, base: Shard | None) -> dict[str, pa.Table]:
        if base is None:
            return {}
        kept = {name: self.read(path, name) for name, path in base.items()}
        kept["rejects"] = kept["rejects"].filter(pc.invert(kept["rejects"]["retryable"]))
        return kept

    def _refuse_undeclared(self, step: str, tables: Sequence[str], rows: Mapping[str, object]) -> None:
        if unexpected := sorted(set(rows) - set(tables)):
            raise TableError(
                f"stage {self.stage.name}, {step}, made rows of {', '.join(unexpected)}; "
                f"it declares {', '.join(tables)}"
            )


def produced_in(shard: Shard) -> int:
    """Items of a finished shard that produced, as counted when they were worked on."""
    return int(part_facts(shard["rejects"])["n_produced"])


def passing_failures(shard: Shard) -> set[str]:
    """Row keys of a finished shard that failed in a way that may pass."""
    rejects = read_part(shard["rejects"], TABLES["rejects"])
    return set(rejects.filter(rejects["retryable"])["row_key"].to_pylist())


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """Row keys by shard, and where the rows that are no items ended. `started_at` is UTC, ISO 8601. It grows by rounds:
    `rounds` has the first shard of each that was drawn on; `closed`: there will be no other."""

    shards: tuple[tuple[str, ...], ...]
    prepared: Accounting
    started_at: str
    rounds: tuple[int, ...] = ()
    closed: bool = False

    @property
    def n_items(self) -> int:
        return sum(len(keys) for keys in self.shards)

    @property
    def first_items(self) -> list[str]:
        """The keys of the first round's items."""
        return [key for keys in self.shards[: self.rounds[0] if self.rounds else None] for key in keys]

    def before(self, number: int) -> ShardPlan:
        """The plan as it was when a round (from 1) was drawn."""
        return replace(self, shards=self.shards[: self.rounds[number - 1]], rounds=self.rounds[: number - 1])

    def grown(self, items: Sequence[str], shard_rows: int, accounting: Accounting) -> ShardPlan:
        """With one round more, and closed where it has no items. StoreError when an item was named before."""
        known = [key for keys in self.shards for key in keys]
        prepared = self.prepared + accounting
        if not items:
            return replace(self, prepared=prepared, closed=True)
        shards = (*self.shards, *deal(items, shard_rows, known))
        return replace(self, shards=shards, prepared=prepared, rounds=(*self.rounds, len(self.shards)))


def deal(items: Sequence[str], shard_rows: int, known: Sequence[str] = ()) -> tuple[tuple[str, ...], ...]:
    """Items in order, `shard_rows` a shard, more where that would make too many shards.

    StoreError when an item is named twice, or is `known`.
    """
    if len({*items, *known}) != len(items) + len(known):
        twice = sorted(item for item, count in Counter([*items, *known]).items() if count > 1)[:3]
        raise StoreError(f"row keys must be unique within a stage, found twice: {', '.join(twice)}")
    shard_rows = max(shard_rows, math.ceil(len(items) / MOST_SHARDS))
    return tuple(tuple(items[start : start + shard_rows]) for start in range(0, len(items), shard_rows))


def write_plan(path: Path, scratch: Path, plan: ShardPlan) -> None:
    plain: dict[str, Any] = {
        "shards": plan.shards,
        "prepared": plan.prepared.to_json(),
        "started_at": plan.started_at,
        "rounds": plan.rounds,
        "closed": plan.closed,
    }
    write_text(path, scratch, json.dumps(plain, ensure_ascii=False))


def read_plan(path: Path) -> ShardPlan | None:
    """The plan of a run that began earlier; None when none did."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        shards = tuple(tuple(keys) for keys in plain["shards"])
        accounting, rounds = Accounting.from_json(plain["prepared"]), tuple(plain["rounds"])
        return ShardPlan(shards, accounting, plain["started_at"], rounds, plain["closed"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"shard plan {path} cannot be read ({error}); delete it to begin the stage afresh") from None
