"""What stages stand on: the workspace that all of a process share (settings, models, the artifacts folder, the reply
cache), and the context that the steps of one see (declared inputs, what the run has made, models and the encoder)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import polars as pl

from tasks.foundation.errors import StoreError, TableError
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.own_models import all_models
from tasks.foundation.settings import Settings, load_settings
from tasks.foundation.sources.hub import Revisions
from tasks.foundation.stage import AnySource, Stage
from tasks.foundation.store.commits import Commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import PartWriter
from tasks.foundation.tables import TABLES, Table
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.similarity import Similarity, similarity_of

WRITTEN_BY_PEOPLE = ("human_reviews", "human_ratings")
"""Tables that no stage makes; without any, they read as empty."""

HELD_ROWS = 50_000
"""A table with as many rows is read once and held; of a larger one every shard reads what it wants."""

Writer = Callable[[str], AbstractContextManager[PartWriter]]


@dataclass
class Workspace:
    """Opened once a run. `stage_of` maps each table to the stage that makes it, for messages. `remembered` is what the
    settings have on top of the profile, for later runs of the build; those of a `guest`, which is one target more on
    a benchmark that is there, do not count."""

    settings: Settings
    profile: str
    layout: Layout
    models: Mapping[str, ModelSpec]
    stage_of: Mapping[str, str] = field(default_factory=dict)
    remembered: tuple[str, ...] = ()
    guest: bool = False
    _encoder: Encoder | None = None
    _similarities: dict[Language, Similarity] = field(default_factory=dict)
    _cache: ReplyCache | None = None

    @staticmethod
    def open(profile: str, overrides: tuple[str, ...] = (), layout: Layout | None = None) -> Workspace:
        """Settings of the profile with overrides; ConfigError before anything else happens."""
        layout = layout or Layout.default()
        settings = load_settings(profile, overrides)
        return Workspace(settings, profile, layout, all_models(layout), remembered=overrides)

    @property
    def encoder(self) -> Encoder:
        """The sentence encoder of English texts, with its stored embeddings."""
        if self._encoder is None:
            found = self.similarity("en")
            assert isinstance(found, Encoder), found
            self._encoder = found
        return self._encoder

    def similarity(self, language: Language) -> Similarity:
        """What texts of a language are compared with, by the settings and the weights that are here."""
        if language == "en" and self._encoder is not None:
            return self._encoder
        if language not in self._similarities:
            cache = self.layout.cache / "embeddings"
            self._similarities[language] = similarity_of(language, self.settings, cache)
        return self._similarities[language]

    @property
    def similarities(self) -> dict[Language, Similarity]:
        """Those of all languages."""
        return {language: self.similarity(language) for language in LANGUAGES}

    @property
    def cache(self) -> ReplyCache:
        """The reply cache, opened on first use."""
        if self._cache is None:
            self._cache = ReplyCache(self.layout.cache / "replies.sqlite")
        return self._cache

    def close(self) -> None:
        if self._cache is not None:
            self._cache.close()
            self._cache = None


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

    def has(self, table: str) -> bool:
        """Whether a stage of the build has made it."""
        return bool(makers(self._commits, table))

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
        """A committed input table of this build, or some of its rows and columns, in key order."""
        if table not in self._stage.reads:
            raise TableError(f"stage {self._stage.name} reads table {table!r} without declaring it in `reads`")
        partly = where is not None or columns is not None
        if table not in self._frames and partly and self._rows(table) > HELD_ROWS:
            return read_rows(self._workspace.layout, TABLES[table], self._committed(table), where, columns)
        if table not in self._frames:
            self._frames[table] = read_rows(self._workspace.layout, TABLES[table], self._committed(table))
        return select_rows(self._frames[table], where, columns)

    def members(self, table: str) -> tuple[str, ...]:
        """The members of the fan-out whose runs have committed the table, sorted."""
        if table not in self._stage.asks_members:
            raise TableError(f"stage {self._stage.name} asks who made {table!r} without declaring it in `asks_members`")
        return members_with(self._commits, table)

    def committed(self, table: str) -> pl.DataFrame:
        """A table that the stage itself has committed, in key order."""
        return read_rows(self._workspace.layout, TABLES[table], self._committed(table))

    def made(self, table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """What this run has made so far of a table or draft, or some of its rows and columns, in key order."""
        return read_rows(self._workspace.layout, declared(self._stage, table), self._made(table), where, columns)

    def _rows(self, table: str) -> int:
        """How many rows a committed table has."""
        return sum(commit.rows(table) for commit in makers(self._commits, table))

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


def members_with(commits: Mapping[str, Commit], table: str) -> tuple[str, ...]:
    """The members of the commits that hold a table, sorted."""
    return tuple(sorted({commit.member for commit in makers(commits, table) if commit.member is not None}))


class MissingInput(StoreError):
    """A stage reads a table that the build does not have yet; `made_by` is the stage that makes it, where one does."""

    def __init__(self, stage: str, table: str, made_by: str | None) -> None:
        cure = f"run `colloquy run --from {made_by}` for this build" if made_by else "run the stages before it"
        super().__init__(f"stage {stage} needs table {table}, which this build does not have yet: {cure} first")
        self.made_by = made_by


def read_rows(
    layout: Layout,
    table: Table,
    paths: Sequence[str],
    where: pl.Expr | None = None,
    columns: Sequence[str] | None = None,
) -> pl.DataFrame:
    """The rows of some parts as one polars frame in key order; with `where` or `columns` only those rows and columns,
    and no others are held meanwhile."""
    chosen = list(table.columns if columns is None else columns)
    # `schema.empty_table()` would import pandas, a fifth of a second
    empty = pl.DataFrame(schema=pl.Schema(table.schema))
    if not paths:
        return empty.select(chosen)
    files = [layout.root / path for path in paths]
    rows = pl.scan_parquet(files, schema=empty.schema, glob=False, hive_partitioning=False, low_memory=True)
    try:
        found = (rows if where is None else rows.filter(where)).select({*chosen, *table.key}).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise TableError(f"a part of table {table.name} cannot be read: {error}") from None
    return found.sort(list(table.key), maintain_order=True).select(chosen)


def select_rows(frame: pl.DataFrame, where: pl.Expr | None, columns: Sequence[str] | None) -> pl.DataFrame:
    """The rows of a frame that fulfil `where` (all without it), with some columns (all without any)."""
    chosen = frame if where is None else frame.filter(where)
    return chosen if columns is None else chosen.select(columns)
