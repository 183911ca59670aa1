"""What a stage of a dry run sees: rows of this build where they are there, else those that the dry run of the stages
before it has made; of its sources the first rows.

Amounts are made smaller: a stage that is to make 100,000 rows makes some hundred, each of which stands for many.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import polars as pl

from tasks.foundation.errors import NothingLeft
from tasks.foundation.ids import seed_of
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.run.context import RunContext, Workspace, declared, select_rows
from tasks.foundation.run.cost_plan import PlannedCalls
from tasks.foundation.run.dry_run import plan_items
from tasks.foundation.run.usual_usage import UsageHistory
from tasks.foundation.settings.sections import AtMost, HowMany, PerLanguage, Section, StageSection
from tasks.foundation.sources import open_source
from tasks.foundation.stage import AnySource, Stage, Stored
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import PartWriter, open_part
from tasks.foundation.tables import TABLES, Row
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.encoder import Encoder, LongTexts
from tasks.foundation.texts.similarity import ByCharacters, Similarity

MOST_ROWS = 300
"""Of each language, of what a stage is to work on."""
MOST_SOURCE_ROWS = 200
"""Read of each source."""

SPREAD_OF_ROWS = 1.25
"""By which factor the number of rows may be off that a stage before has yet to make."""

SAMPLES = {
    "nemotron": "nemotron_personas.jsonl",
    "personamem": "personamem_benchmark.jsonl",
    "soda": "soda.jsonl",
    "lccc": "lccc.jsonl",
}
"""Bundled rows of each reader's form: they stand for datasets of the hub, which a dry run does not ask."""

AnySection = TypeVar("AnySection", bound=Section)


@dataclass(frozen=True, slots=True)
class SampleRows:
    """Rows of a table; each stands for `weight` of them."""

    frame: pl.DataFrame
    weight: float = 1.0

    @staticmethod
    def together(several: Sequence[SampleRows]) -> SampleRows:
        frame = pl.concat([one.frame for one in several])
        weight = sum(one.frame.height * one.weight for one in several) / max(frame.height, 1)
        return SampleRows(frame, weight if frame.height else 1.0)


def shrink(section: AnySection) -> tuple[AnySection, float]:
    """The section with fewer rows to work on, and how many rows each of these stands for."""
    marked = [name for name, info in type(section).model_fields.items() if HowMany in info.metadata]
    most = max((_largest(getattr(section, name)) for name in marked), default=0)
    if most <= MOST_ROWS:
        return section, 1.0
    share = MOST_ROWS / most
    return keep_fewer(_scaled(section, marked, share), share), 1 / share


def keep_fewer(section: AnySection, share: float) -> AnySection:
    """The section that keeps as many fewer rows as it is given fewer."""
    fields = type(section).model_fields
    found = _scaled(section, [name for name, info in fields.items() if AtMost in info.metadata], share)
    inner = {name: getattr(found, name) for name in fields if isinstance(getattr(found, name), Section)}
    return found.model_copy(
        update={name: keep_fewer(one, share) for name, one in inner.items() if not isinstance(one, PerLanguage)}
    )


def _scaled(section: AnySection, names: Sequence[str], share: float) -> AnySection:
    return section.model_copy(update={name: _times(getattr(section, name), share) for name in names})


def _times(amount: Any, share: float) -> Any:
    if isinstance(amount, PerLanguage):
        return PerLanguage(en=_times(amount.en, share), zh=_times(amount.zh, share))
    return amount if amount in (None, 0) else max(1, round(amount * share))


def _largest(amount: PerLanguage | int) -> int:
    return max(amount.en, amount.zh) if isinstance(amount, PerLanguage) else amount


class _Unlike(Encoder):
    """Vectors of texts that are all unlike one another: a dry run loads no weights, and drops no text."""

    fingerprint = "unlike"
    dimensions = 64

    def __init__(self) -> None:
        super().__init__("unlike")

    def with_long_texts(self, long_texts: LongTexts) -> Encoder:
        return self

    def encode_alone(self, text: str) -> np.ndarray:
        vector = np.random.default_rng(seed_of("unlike", text)).standard_normal(self.dimensions)
        return cast(np.ndarray, vector / np.linalg.norm(vector))

    def _encode_new(self, texts: Sequence[str]) -> Iterator[tuple[Sequence[int], np.ndarray]]:
        if texts:
            yield range(len(texts)), np.stack([self.encode_alone(text).astype(np.float32) for text in texts])

    def count_pieces(self, texts: Sequence[str]) -> list[int]:
        return [max(1, len(text) // 4) for text in texts]


class DryContext:
    """The `StageContext` of a dry run. `real` reads what the build has; `dry` goes before it."""

    def __init__(
        self,
        workspace: Workspace,
        stage: Stage,
        real: RunContext,
        dry: Mapping[str, SampleRows],
        folder: Path,
        member: str | None = None,
    ) -> None:
        self.settings = workspace.settings
        self.member = member
        self.has_left_out_rows = any(one.weight > 1 for one in dry.values())
        self._workspace = workspace
        self._stage = stage
        self._real = real
        self._dry = dry
        self._layout = Layout(Path(tempfile.mkdtemp(dir=folder)))
        self._stored: dict[str, list[Stored]] = {}
        self._rows: dict[str, list[Row]] = {}

    def model(self, alias: str) -> ModelSpec:
        return self._workspace.models[alias]

    def read(self, table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        if table in self._dry:
            return select_rows(self._dry[table].frame, where, columns)
        if self._real.has(table):
            return self._real.read(table, where, columns)
        return select_rows(_frame(table, []), where, columns)

    def members(self, table: str) -> tuple[str, ...]:
        return self._real.members(table)

    def made(self, table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        kind = declared(self._stage, table)
        stored = [batch for one in self._stored.get(table, ()) for batch in one.batches()]
        frames = [pl.from_arrow(batch) for batch in (*stored, kind.arrow(self._rows.get(table, [])))]
        frame = pl.concat([each for each in frames if isinstance(each, pl.DataFrame)])
        return select_rows(frame.sort(list(kind.key)), where, columns)

    def keep(self, rows: Mapping[str, Sequence[Row] | Stored]) -> None:
        """Adds what a step of the stage has made."""
        for table, made in rows.items():
            if isinstance(made, Sequence):
                self._rows.setdefault(table, []).extend(made)
            else:
                self._stored.setdefault(table, []).append(made)

    @contextlib.contextmanager
    def writer(self, table: str) -> Iterator[PartWriter]:
        path = self._layout.root / f"{table}-{len(self._stored)}-{len(list(self._layout.root.iterdir()))}.parquet"
        with open_part(self._layout, path, declared(self._stage, table)) as part:
            yield part

    def pinned(self, source: AnySource) -> AnySource:
        """The first rows of a local source; bundled ones of the same form for a dataset of the hub."""
        limit = min(source.limit or MOST_SOURCE_ROWS, MOST_SOURCE_ROWS)
        if source.hub is None:
            rows = open_source(source)
            self.has_left_out_rows |= next(itertools.islice(rows, limit, None), None) is not None
            return source.model_copy(update={"limit": limit})
        self.has_left_out_rows = True
        return _bundled(source, limit)

    def encoder(self) -> Encoder:
        return _Unlike()

    def similarity(self, language: Language) -> Similarity:
        return _Unlike() if language == "en" else ByCharacters(language, "a dry run loads no weights")


def _bundled(source: AnySource, limit: int) -> AnySource:
    """Bundled rows in place of a dataset: of its reader's form, or else of the first that fits its stage."""
    if hasattr(source, "column"):
        texts = {"path": f"configs/sample/{SAMPLES['soda']}", "column": "narrative"}
        return source.model_copy(update={**texts, "hub": None, "split": None, "limit": limit})
    reader = getattr(source, "reader", "")
    if reader not in SAMPLES:
        reader = "nemotron" if hasattr(source, "pool") else "soda"
    changes: dict[str, Any] = {"path": f"configs/sample/{SAMPLES[reader]}", "hub": None, "split": None}
    changes |= {"reader": reader, "limit": limit, "language": None}
    for name, unset in (("where", {}), ("mapping", {}), ("shape", None)):
        changes |= {name: unset} if hasattr(source, name) else {}
    return source.model_copy(update=changes)


def _frame(table: str, rows: Sequence[Row]) -> pl.DataFrame:
    frame = pl.from_arrow(TABLES[table].arrow(rows))
    assert isinstance(frame, pl.DataFrame)
    return frame


@dataclass(frozen=True, slots=True)
class DryStage:
    """What a dry run of one stage (of a stage that fans out, for one member) found."""

    calls: Sequence[PlannedCalls]
    makes: Mapping[str, SampleRows]


def run_dry(
    stage: Stage,
    member: str | None,
    workspace: Workspace,
    real: RunContext,
    dry: Mapping[str, SampleRows],
    history: UsageHistory,
    folder: Path,
    *,
    most_requests: int,
) -> DryStage:
    """The stage's own steps on few rows, without its models. Raises what its `prepare` raises."""
    context, settings = DryContext(workspace, stage, real, dry, folder, member), workspace.settings
    section: StageSection = getattr(settings, stage.name)
    given = max((dry[table].weight for table in stage.items_from.values() if table in dry), default=1.0)
    small, share = shrink(keep_fewer(section.of_few_rows(), 1 / given))
    context.settings = settings.model_copy(update={stage.name: small})
    prepared = stage.prepare(context)
    context.keep(prepared.rows)
    found = len(prepared.items)
    expected = found * share if stage.draw_on else _expected_items(section, small, share, found, context)
    groups = _groups(stage, prepared.items, dry, expected)
    guessed = any(table in dry for table in stage.reads)
    worked = plan_items(
        *(stage, context, groups, workspace.models, history),
        most_requests=most_requests,
        spread=SPREAD_OF_ROWS if guessed else 1.0,
        settings=settings,
    )
    context.keep(worked.rows)
    weight = worked.weight if stage.work is not None else given
    context.settings = settings.model_copy(update={stage.name: keep_fewer(section, 1 / weight)})
    if stage.finish is not None:
        with contextlib.suppress(NothingLeft):
            context.keep(stage.finish(context).rows)
    return DryStage(worked.calls, {table: SampleRows(context.made(table), weight) for table in stage.writes})


def _expected_items(section: Section, small: Section, share: float, found: int, context: DryContext) -> float | None:
    """How many items a stage has that is told how many rows to work on; None for any other."""
    marked = [name for name, info in type(section).model_fields.items() if HowMany in info.metadata]
    if not marked:
        return None
    wanted = getattr(section, marked[0])
    if isinstance(wanted, PerLanguage) and found < getattr(small, marked[0]).total and context.has_left_out_rows:
        return wanted.total
    return found * share


def _groups(
    stage: Stage, items: Sequence[str], dry: Mapping[str, SampleRows], expected: float | None
) -> dict[str, tuple[list[str], float]]:
    """The items by the table that they come from, and how many items each one stands for."""
    groups: dict[str, tuple[list[str], float]] = {}
    for key in items:
        table = next((table for prefix, table in stage.items_from.items() if key.startswith(prefix)), "")
        if table not in groups:
            weight = dry[table].weight if table in dry else 1.0
            groups[table] = ([], weight if expected is None else expected / len(items))
        groups[table][0].append(key)
    return groups
