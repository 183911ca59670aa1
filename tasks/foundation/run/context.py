"""What the steps of a stage see: declared inputs, what the run has made, models and the encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

import polars as pl

from tasks.foundation.errors import StoreError, TableError
from tasks.foundation.llm.request import ModelSpec
from tasks.foundation.run.workspace import Workspace
from tasks.foundation.settings import Settings
from tasks.foundation.sources.hub import Revisions
from tasks.foundation.stage import AnySource, Stage
from tasks.foundation.store.commits import Commit
from tasks.foundation.store.parts import PartWriter, portion, read_frame, read_portion
from tasks.foundation.tables import TABLES, Table
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.similarity import Similarity

WRITTEN_BY_PEOPLE = ("human_reviews", "human_ratings")
"""Tables that no stage makes; without any, they read as empty."""


Writer = Callable[[str], AbstractContextManager[PartWriter]]


class RunContext:
    """The `StageContext` of a run. Frames are read once and kept. Without a `writer` nothing can be written."""

    def __init__(
        self,
        workspace: Workspace,
        stage: Stage,
        build: str,
        commits: Mapping[str, Commit],
        made: Callable[[str], list[str]] = lambda table: [],
        member: str | None = None,
        writer: Writer | None = None,
    ) -> None:
        self.settings: Settings = workspace.settings
        self.member = member
        self._workspace = workspace
        self._stage = stage
        self._commits = commits
        self._made = made
        self._writer = writer
        self._revisions = Revisions.of(workspace.layout, build)
        self._frames: dict[str, pl.DataFrame] = {}

    def model(self, alias: str) -> ModelSpec:
        return self._workspace.models[alias]

    def encoder(self) -> Encoder:
        return self._workspace.encoder

    def similarity(self, language: Language) -> Similarity:
        return self._workspace.similarity(language)

    def writer(self, table: str) -> AbstractContextManager[PartWriter]:
        """Writes a table that `prepare` makes, in batches."""
        if self._writer is None:
            raise TableError(f"stage {self._stage.name} writes table {table} where it is only being checked")
        return self._writer(table)

    def pinned(self, source: AnySource) -> AnySource:
        """The source at the commit of its dataset that this build reads. SourceError when the hub is out of reach."""
        return self._revisions.pinned(source)

    def read(self, table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """A committed input table of this build, or a portion of it, in key order."""
        if table not in self._stage.reads:
            raise TableError(f"stage {self._stage.name} reads table {table!r} without declaring it in `reads`")
        if table not in self._frames and (where is not None or columns is not None):
            return read_portion(self._workspace.layout, TABLES[table], self._committed(table), where, columns)
        if table not in self._frames:
            self._frames[table] = read_frame(self._workspace.layout, TABLES[table], self._committed(table))
        return portion(self._frames[table], where, columns)

    def made(self, table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """What this run has made so far of a table or draft, or a portion of it, in key order."""
        kind, paths = declared(self._stage, table), self._made(table)
        if where is not None or columns is not None:
            return read_portion(self._workspace.layout, kind, paths, where, columns)
        return read_frame(self._workspace.layout, kind, paths)

    def _committed(self, table: str) -> list[str]:
        """Paths of a table's parts; StoreError when no stage has made it and the stage needs it."""
        holding = makers(self._commits, table)
        if not holding and not may_be_missing(self._stage, table):
            raise MissingInput(self._stage.name, table, self._workspace.stage_of.get(table))
        return [part.path for commit in holding for part in commit.tables[table]]


def may_be_missing(stage: Stage, table: str) -> bool:
    """Whether a table that no commit holds reads as empty."""
    return table in WRITTEN_BY_PEOPLE or table in stage.reads_if_made


def declared(stage: Stage, table: str) -> Table:
    """The table or draft of this name; TableError when the stage has none."""
    for draft in stage.drafts:
        if draft.name == table:
            return draft
    if table in TABLES:
        return TABLES[table]
    raise TableError(f"stage {stage.name} names table {table!r}, which is neither declared in TABLES nor a draft")


def makers(commits: Mapping[str, Commit], table: str) -> list[Commit]:
    """The commits that hold a table: one, all members of a fan-out, or none when no stage has made it yet."""
    return [commit for commit in commits.values() if table in commit.tables]


class MissingInput(StoreError):
    """A stage reads a table that the build does not have yet; `made_by` is the stage that makes it, where one does."""

    def __init__(self, stage: str, table: str, made_by: str | None) -> None:
        cure = f"run `colloquy run --from {made_by}` for this build" if made_by else "run the stages before it"
        super().__init__(f"stage {stage} needs table {table}, which this build does not have yet: {cure} first")
        self.made_by = made_by
