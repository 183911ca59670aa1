"""What a stage is: tables in, tables out, and three steps that a run drives.

1. `prepare` runs once: it reads the inputs, writes what needs no model, and names the *items* that do.
2. `work` runs once an item, many at a time, in shards; a `ModelError` turns its item into a reject.
3. `finish` runs once over everything the items made: ranks, selections, what needs the whole.

Where what the items made shows that more are needed, `draw_on` names further ones before `finish`, round by round.

A stage knows nothing of files, builds, shards or Prefect; it sees a `StageContext`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar

import polars as pl
import pyarrow as pa
from pydantic import BaseModel

from tasks.foundation.errors import ModelError
from tasks.foundation.ids import seed_of
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.output_form import append_form
from tasks.foundation.llm.prompts import Prompt
from tasks.foundation.llm.request import Message, Request
from tasks.foundation.settings import Settings
from tasks.foundation.settings.sections import Source, StageSection
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.tables import Row, Table
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.replies import Manner, bind
from tasks.foundation.texts.similarity import Similarity

Rows = Mapping[str, Sequence[Row]]
"""Rows by table name (a declared table that the stage writes, or one of its drafts)."""
Part = TypeVar("Part")
Value = TypeVar("Value")
AnySource = TypeVar("AnySource", bound=Source)


class Stored(Protocol):
    """Rows that have been written, of a table too large to be held; read only as far as they are needed."""

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in the order they were written, some thousands at once; of some columns only, if named."""

    def column(self, name: str) -> Sequence[Any]:
        """The values of one column by position, read as they are asked for."""

    def __len__(self) -> int: ...


class TableWriter(Protocol):
    """Writes a table in batches."""

    @property
    def stored(self) -> Stored:
        """What it has written; to be read once the writer is closed."""

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Adds rows of the table's schema."""


PreparedRows = Mapping[str, Sequence[Row] | Stored]
"""Rows by table name; of a table too large to be held, what a writer of the context has stored."""


class StageContext(Protocol):
    """What the steps of a stage may see."""

    settings: Settings
    member: str | None
    """For a stage that fans out: the target (or judge) of this run; else None."""

    def model(self, alias: str) -> ModelSpec:
        """The model of an alias (its family, for example)."""

    def read(self, table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """A committed input table of this build, in key order; only tables the stage declares in `reads`.

        With `where` or `columns`, only those rows and columns are held: for tables of the corpus's size.
        """

    def members(self, table: str) -> tuple[str, ...]:
        """The targets (or judges) that a stage which fans out has made this table for, sorted: those too of whom it has
        no row. Only of tables that the stage declares in `asks_members`."""

    def made(self, table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """What this run has made so far of a table it writes or of a draft: in `work`, what `prepare` wrote;
        in `finish`, everything. Else as `read`."""

    def writer(self, table: str) -> AbstractContextManager[TableWriter]:
        """In `prepare`: writes a table in batches. What it has stored belongs into `Prepared.rows`."""

    def pinned(self, source: AnySource) -> AnySource:
        """The source with the commit of its hub dataset that this build reads; a local source as it is.

        A branch is looked up when a build first needs it and then stays where it was. Raises SourceError.
        """

    def encoder(self) -> Encoder:
        """The sentence encoder of English texts."""

    def similarity(self, language: Language) -> Similarity:
        """What texts of a language are compared with: an encoder that knows it, else their characters."""


class Asker(ABC):
    """How `work` asks a model about one row. Every request lands in the row's ledger rows; who inherits says how it is
    sent."""

    def __init__(self, stage: str, row_key: str, settings: Settings) -> None:
        self._stage = stage
        self._row_key = row_key
        self._settings = settings
        self._seed = settings.run.seed

    async def __call__(
        self,
        prompt: Prompt[Any, Any],
        inputs: BaseModel,
        *,
        language: Language,
        alias: str,
        purpose: str,
        temperature: float,
        max_tokens: int,
        reply: type[BaseModel] | None = None,
        sample: int = 0,
        history: Sequence[Message] = (),
    ) -> Any:
        """The validated reply (an instance of `reply`, else of the prompt's reply model; text if neither).

        `history` holds the earlier messages of a chat; they stand between the prompt's system message and its
        last one. Where text is asked for, a refusal in words and a text that stays cut off are replies.

        Raises ModelError when the request failed for good, ModelUnavailable when no request can succeed.
        """
        limits = self._settings.text_limits
        *opening, last = prompt.render(language, inputs, limits)
        model: type[BaseModel] | None = reply or prompt.reply_model
        bound = None if model is None else bind(model, Manner(limits, language))
        if bound is not None and self._settings.llm.show_output_form:
            opening = [*opening[:-1], append_form(opening[-1], bound, language)]
        request = Request(
            stage=self._stage,
            row_key=self._row_key,
            purpose=purpose,
            alias=alias,
            messages=(*opening, *(prompt.defuse(language, message) for message in history), last),
            reply=bound,
            sample=sample,
            temperature=temperature,
            max_tokens=max_tokens,
            seed=seed_of(self._seed, sample),
            prompt_fingerprint=prompt.fingerprint,
        )
        return await self.send(request)

    async def in_parts(
        self, wanted: Sequence[Part], ask: Callable[[tuple[Part, ...]], Awaitable[Mapping[Part, Value]]]
    ) -> dict[Part, Value]:
        """What `ask` gets of a model for each of `wanted`. Those that could not be used, or were cut off, are asked for
        again alone, as often as a whole reply would be; a part that is still missing then has no entry.

        Raises ModelError when there was no part that could be used, or when the failure may pass later.
        """
        found: dict[Part, Value] = {}
        for _ in range(1 + self._settings.llm.max_reasks):
            missing = tuple(part for part in wanted if part not in found)
            if not missing:
                break
            try:
                found |= await ask(missing)
            except ModelError as error:
                if error.may_pass_later or not found:
                    raise
                break
        return found

    @abstractmethod
    async def send(self, request: Request) -> Any:
        """The validated reply to a request."""

    @property
    @abstractmethod
    def last_reply(self) -> str:
        """The text of the last reply to the request that ended last, as it came; empty where none came."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What `prepare` made: rows, the items to work on, and where the input rows ended so far.

    `accounting` covers every input row that is not an item; items are counted by the run.
    """

    items: Sequence[str]
    rows: PreparedRows = field(default_factory=dict)
    accounting: Accounting = field(default_factory=Accounting)


@dataclass(frozen=True, slots=True)
class Finished:
    """What `finish` made; `filtered` counts items that `work` produced but that end here, by reason."""

    rows: Rows = field(default_factory=dict)
    filtered: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DrawOn:
    """How a stage names further items, in rounds, once all items so far are worked on.

    A round may depend on nothing but what the rounds before it have prepared and made; so it is the same after a kill.
    """

    draw: Callable[[StageContext, int], Prepared | None]
    """The items of a round (from 1), with rows of the tables that `prepare` writes; None: there are enough."""
    until: str
    """The yes-or-no field of the replies that items are drawn for; `colloquy plan` expects its usual share of them."""
    most: Callable[[Settings], int]
    """Items of all rounds together, the first included."""


Benchmark = Literal["demo", "eyt", "both"]

ModelFacts = Callable[[Settings, Mapping[str, ModelSpec], Collection[str]], object]
"""From the settings, all models, and the aliases of those that a build has asked."""


@dataclass(frozen=True)
class Stage:
    """One stage, declared once: its flow, its place in the chain and what its runs depend on follow from this.

    `prepared`, `worked` and `finished` name the tables each step writes (drafts included; a round of `draw_on` writes
    those of `prepared`); every stage also writes rejects, llm_calls and replies.
    """

    name: str
    """That of its package, and of its section of the settings."""
    reads: tuple[str, ...]
    prepare: Callable[[StageContext], Prepared]
    doc: str = ""
    """One line: what it makes of what."""
    section: type[StageSection] = StageSection
    """The class of its section of the settings."""
    benchmark: Benchmark = "both"
    """Which benchmark it is made for; `run.benchmark` leaves out the stages of the other."""
    prepared: tuple[str, ...] = ()
    draw_on: DrawOn | None = None
    load_items: Callable[[StageContext, Sequence[str]], Mapping[str, Any]] | None = None
    work: Callable[[StageContext, Any, Asker], Awaitable[Rows]] | None = None
    worked: tuple[str, ...] = ()
    finish: Callable[[StageContext], Finished] | None = None
    finished: tuple[str, ...] = ()
    drafts: tuple[Table, ...] = ()
    prompts: tuple[Prompt[Any, Any], ...] = ()
    taxonomies: tuple[str, ...] = ()
    text_limits: tuple[str, ...] = ()
    """The text limits that its code reads, beside those of its prompts and their replies."""
    encodes: bool = False
    """Whether it compares texts by their embeddings."""
    roles: Callable[[Settings], Mapping[str, Sequence[str]]] = lambda settings: {}
    """The model aliases in use by role."""
    check: Callable[[StageContext], None] = lambda context: None
    """Raises ConfigError for settings that cannot work (the family rule), before anything is read or paid for."""
    sources: Callable[[Settings], Sequence[Source]] = lambda settings: ()
    """The files and datasets its rows come from."""
    files: Callable[[Settings], Sequence[Any]] = lambda settings: ()
    """Further files whose content its rows depend on (mapping files)."""
    model_facts: ModelFacts = lambda settings, models, used: ()
    """What its rows say of models, given those that the build's other stages have used."""
    fan_out: str | None = None
    """It runs once for every alias of this role (targets, judges), each with a commit of its own: adding one adds,
    never overwrites."""
    reads_if_made: tuple[str, ...] = ()
    """Those of `reads` that are empty, instead of an error, as long as no stage has made them."""
    asks_members: tuple[str, ...] = ()
    """Those of `reads` of which it asks for whom they were made, rows or not."""
    items_from: Mapping[str, str] = field(default_factory=dict)
    """Of which table's rows its items are, by what their keys begin with; not needed where a setting that is marked
    `HowMany` says how many there are."""

    @cached_property
    def writes(self) -> tuple[str, ...]:
        """The declared tables this stage commits, in order, without those that every stage writes."""
        drafts = {table.name for table in self.drafts}
        steps = (*self.prepared, *self.worked, *self.finished)
        return tuple(dict.fromkeys(name for name in steps if name not in drafts and name != "rejects"))

    @cached_property
    def limits(self) -> frozenset[str]:
        """The names of all text limits that its rows depend on."""
        return frozenset(self.text_limits).union(*(prompt.limits for prompt in self.prompts))

    @property
    def package(self) -> str:
        """The Python package that holds the stage's code (its `task` module's)."""
        return self.prepare.__module__.rpartition(".")[0]

    def serves(self, benchmark: Benchmark) -> bool:
        """Whether a build of this benchmark needs the stage."""
        return "both" in (benchmark, self.benchmark) or benchmark == self.benchmark

    def section_of(self, settings: Settings) -> StageSection:
        """The stage's section of the settings."""
        section: StageSection = getattr(settings, self.name)
        return section

    def members(self, settings: Settings) -> tuple[str | None, ...]:
        """The aliases it fans out over; one None for a stage that does not."""
        return tuple(self.roles(settings)[self.fan_out]) if self.fan_out else (None,)

    def aliases(self, settings: Settings, member: str | None = None) -> tuple[str, ...]:
        """Every model alias a run names, once, in order of its roles; of the fan-out role, only the member."""
        roles = dict(self.roles(settings))
        if self.fan_out and member is not None:
            roles[self.fan_out] = [member]
        return tuple(dict.fromkeys(alias for aliases in roles.values() for alias in aliases))
