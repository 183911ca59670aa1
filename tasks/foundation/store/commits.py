"""Commits: the JSON record that makes a stage's rows visible, all its tables at once; and the last runs of a stage that
are committed no longer, or failed.

{"build": "2026-12", "stage": "scenes", "member": null, "fingerprint": "3f9a…", "revision": 0, "partial": false,
 "tables": {"scenes": [{"path": …, "rows": 8, "hash": …, "label": "00000"}, …], …}, "accounting": …}

artifacts/builds/2026-12/.runs/scenes.json     [{"state": "replaced", "revision": 0, …}, …], oldest first
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tasks.foundation.errors import StoreError
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.store.files import write_text
from tasks.foundation.store.layout import Layout, is_build_name, run_name
from tasks.foundation.store.parts import PartFile, is_whole, sum_hashes
from tasks.foundation.store.records import read_commit_record
from tasks.foundation.tables.operations import StageRunRow, State

log = logging.getLogger(__name__)


MOST_PAST_RUNS = 20
"""Past runs that a stage of a build keeps."""

_PAST_RUNS = TypeAdapter(list[StageRunRow])


@dataclass(frozen=True, slots=True)
class Commit:
    """One committed stage of one build; of a stage that fans out, one member (its target or judge).

    `partial`: rows failed in a way that may pass later. `components` are the parts of the fingerprint by
    name (why is it stale?). `parents` maps each input table to the content hash that was read. `record` is
    what only people read: settings, versions, usage. `columns` are those of each table when it was written, with their
    Arrow types; of a table that is not named, those it has now. Times are UTC, ISO 8601.
    """

    build: str
    stage: str
    member: str | None
    fingerprint: str
    revision: int
    partial: bool
    tables: Mapping[str, tuple[PartFile, ...]]
    drafts: Mapping[str, tuple[PartFile, ...]]
    accounting: Accounting
    components: Mapping[str, str]
    parents: Mapping[str, str]
    started_at: str
    ended_at: str
    ends_chain: bool
    usage: Mapping[str, Any]
    record: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def run(self) -> str:
        """Its name within the build: the stage, and the member if it has one."""
        return run_name(self.stage, self.member)

    def table_hash(self, table: str) -> str:
        """Content hash of one of its tables."""
        return sum_hashes(part.hash for part in self.tables[table])

    def rows(self, table: str) -> int:
        return sum(part.rows for part in self.tables[table])

    def row(self, state: State = "committed") -> StageRunRow:
        """Its row in `stage_runs`."""
        accounting = self.accounting
        return StageRunRow(
            stage=self.stage,
            member=self.member,
            fingerprint=self.fingerprint,
            revision=self.revision,
            partial=self.partial,
            n_in=accounting.n_in,
            n_produced=accounting.n_produced,
            n_filtered=accounting.n_filtered,
            n_failed=accounting.n_failed,
            filtered_by=json.dumps(dict(accounting.filtered), ensure_ascii=False),
            failed_by=json.dumps(dict(accounting.failed), ensure_ascii=False),
            calls=self.usage.get("calls"),
            cost_usd=self.usage.get("cost_usd"),
            started_at=datetime.fromisoformat(self.started_at),
            ended_at=datetime.fromisoformat(self.ended_at),
            state=state,
            reason=None,
        )

    def summary(self) -> Commit:
        """Itself without its files: one part a table stands for all of them. Says what the whole says of rows, hashes,
        parents and profile."""
        kept = {name: self.record[name] for name in ("profile", "overrides", "guest") if name in self.record}
        tables = {table: (PartFile("", self.rows(table), self.table_hash(table), ""),) for table in self.tables}
        return replace(self, tables=tables, drafts={}, columns={}, components={}, record=kept)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "accounting": self.accounting.to_json()}

    @staticmethod
    def from_json(plain: Mapping[str, Any]) -> Commit:
        return Commit(
            **{
                **plain,
                "tables": _parts_from_json(plain["tables"]),
                "drafts": _parts_from_json(plain["drafts"]),
                "accounting": Accounting.from_json(plain["accounting"]),
            }
        )


def _parts_from_json(plain: Mapping[str, Any]) -> dict[str, tuple[PartFile, ...]]:
    return {table: tuple(PartFile(**part) for part in each) for table, each in plain.items()}


def missing_parts(layout: Layout, commit: Commit) -> dict[str, int]:
    """How many files of each table that a commit lists are not there, or no Parquet files; empty when all are."""
    listed = {**commit.tables, **commit.drafts}
    gone = {table: sum(not is_whole(layout.root / part.path) for part in parts) for table, parts in listed.items()}
    return {table: count for table, count in gone.items() if count}


def whole_commits(layout: Layout, build: str) -> dict[str, Commit]:
    """As `commits_of`, without those that list files which are missing: a run makes their rows again."""
    return {run: commit for run, commit in commits_of(layout, build).items() if not missing_parts(layout, commit)}


def write_commit(layout: Layout, commit: Commit) -> None:
    """Make the commit visible by one rename; the one it replaces is remembered as a past run."""
    earlier = _replaced(layout, commit)
    if earlier is not None:
        remember(layout, commit.build, earlier.row("replaced"))
    text = json.dumps(commit.to_json(), indent=1, ensure_ascii=False)
    write_text(layout.commit(commit.build, commit.run), layout.scratch, text)


def _replaced(layout: Layout, commit: Commit) -> Commit | None:
    try:
        return read_commit(layout, commit.build, commit.run)
    except StoreError:  # that it cannot be read is why it is made again
        return None


def read_commit(layout: Layout, build: str, run: str) -> Commit | None:
    """The commit of a stage run in a build; None when it has none. StoreError for a damaged record."""
    path = layout.commit(build, run)
    try:
        return Commit.from_json(read_commit_record(path, build, run))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StoreError(
            f"commit record {path} cannot be read ({error}). It is written whole, so something else changed it: "
            "restore it, or delete it and run the stage again (replies come from the cache)."
        ) from None


def commits_of(layout: Layout, build: str) -> dict[str, Commit]:
    """The commits of a build by the name of their run, oldest first; empty for a build that does not exist."""
    folder = layout.builds / build
    found = [read_commit(layout, build, path.stem) for path in sorted(folder.glob("*.json"))]
    commits = sorted((commit for commit in found if commit is not None), key=lambda commit: commit.ended_at)
    return {commit.run: commit for commit in commits}


def behind(commits: Mapping[str, Commit]) -> dict[str, list[str]]:
    """Runs of a build that were made from rows which have changed since, each with the tables that have."""

    def now(table: str) -> str:
        holding = [commit for commit in commits.values() if table in commit.tables]
        return sum_hashes(commit.table_hash(table) for commit in holding) if holding else ""

    hashes = {table: now(table) for table in {table for commit in commits.values() for table in commit.parents}}
    late = {
        run: [table for table, found in commit.parents.items() if hashes[table] != found]
        for run, commit in commits.items()
    }
    return {run: tables for run, tables in late.items() if tables}


@dataclass(frozen=True, slots=True)
class MadeWith:
    """The profile a build was made with, and the settings on top of it, as section.key=value."""

    profile: str
    overrides: tuple[str, ...]


def begin_with(layout: Layout, build: str, profile: str, overrides: Sequence[str]) -> None:
    """Writes down what a build is begun with: its first stage may fail, and the next run goes on all the same."""
    text = json.dumps({"profile": profile, "overrides": list(overrides)}, ensure_ascii=False)
    write_text(layout.begun(build), layout.scratch, text)


def begun_with(layout: Layout, build: str) -> MadeWith | None:
    """What a build was begun with; None for one that was not, or whose note cannot be read."""
    try:
        note = json.loads(layout.begun(build).read_text(encoding="utf-8"))
        profile, overrides = note["profile"], note["overrides"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    readable = isinstance(overrides, list) and all(isinstance(each, str) for each in [profile, *overrides])
    return MadeWith(profile, tuple(overrides)) if readable else None


def made_with(commits: Mapping[str, Commit], guests: Collection[str]) -> MadeWith | None:
    """What a build was made with; None where no commit says.

    That of the newest commit that is no further target's; without any, that of the oldest, which is the first
    target's. Commits that do not say whose they are count as such where their stage is one of `guests`.
    """
    telling = sorted((commit for commit in commits.values() if "profile" in commit.record), key=lambda c: c.ended_at)
    own = [commit for commit in telling if not commit.record.get("guest", commit.stage in guests)]
    chosen = own[-1:] or telling[:1]
    if not chosen:
        return None
    return MadeWith(str(chosen[0].record["profile"]), tuple(chosen[0].record.get("overrides", ())))


def builds(layout: Layout) -> list[str]:
    """Names of all builds that have a commit, or the record of one that cannot be read."""
    return sorted({path.parent.name for path in layout.builds.glob("*/*.json") if is_build_name(path.parent.name)})


def pinned_build(layout: Layout) -> str | None:
    """The build that `colloquy use` chose; None where it chose none, or (with a warning) what it wrote is no build."""
    try:
        name = layout.pin.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        log.warning("%s cannot be read (%s), so no build is pinned; `colloquy use` writes it anew", layout.pin, error)
        return None
    if name in builds(layout):
        return name
    log.warning(
        "%s: expected one of %s, found %r, so no build is pinned; `colloquy use` writes it anew",
        *(layout.pin, ", ".join(builds(layout)) or "no build, there is none yet", name[:80]),
    )
    return None


def newest_build(commits: Iterable[tuple[bool, datetime, str]]) -> str | None:
    """Of commits, each told by whether it ends a chain, when it was made, and its build: the build of the newest that
    ends one, else of the newest; None without any."""
    *_, build = max(commits, default=(None,))
    return build


def remember(layout: Layout, build: str, row: StageRunRow) -> None:
    """Adds a run to the past ones of its stage, of which the last MOST_PAST_RUNS are kept; StoreError when that cannot
    be written. Whoever calls holds the stage's lock."""
    kept = [each for each in past_runs(layout, build, _run(row)) if not each.is_of(row)]
    rows = [each.model_dump(mode="json") for each in [*kept, row][-MOST_PAST_RUNS:]]
    write_text(layout.past_runs(build, _run(row)), layout.scratch, json.dumps(rows, ensure_ascii=False, indent=1))


def past_runs(layout: Layout, build: str, run: str) -> list[StageRunRow]:
    """Runs of a stage that are past, oldest first; none where nothing is written down, or nothing that can be read,
    since only people read it."""
    try:
        rows = _PAST_RUNS.validate_json(layout.past_runs(build, run).read_bytes())
    except (OSError, ValidationError):
        return []
    return [row for row in rows if _run(row) == run]


def _run(row: StageRunRow) -> str:
    return run_name(row.stage, row.member)


def with_past(committed: StageRunRow | None, past: Iterable[StageRunRow]) -> Sequence[StageRunRow]:
    """All runs of a stage. A commit that is about to be replaced is written down as past before it is."""
    if committed is None:
        return list(past)
    return [*(row for row in past if not row.is_of(committed)), committed]
