"""What a stage says of itself before it runs: what it will ask (`Ask`) and which rows it will make (`Portion`).

A stage's `estimate(view)` builds its prompts with its own functions from the shortest and the longest rows that
its inputs may have: measured where they are committed, else as the estimates of the stages before it have
projected them.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.planning.meter import Meter, PromptSize, Reply
from tasks.foundation.planning.span import Span
from tasks.foundation.settings import Settings
from tasks.foundation.stage import Stage


@dataclass(frozen=True, slots=True)
class Kind:
    """Rows of one language (and, where `of` says so, of one task): the least and the most that one of them holds.

    Each value of `short` and `long` may come from another row; only the columns that prompts show are there.
    """

    language: str
    short: Any
    long: Any
    of: str = ""

    @staticmethod
    def made_of(language: str, rows: Iterable[Any], of: str = "") -> Kind:
        """The kind of a short row and a long one."""
        short, long = rows
        return Kind(language, short, long, of)

    @property
    def both(self) -> tuple[Any, Any]:
        return (self.short, self.long)


@dataclass(frozen=True, slots=True)
class Portion:
    """How many rows a table has of some kinds; of several kinds, how many of each is not known."""

    rows: Span
    kinds: tuple[Kind, ...]


Known = Mapping[str, Sequence[Portion]]
"""What is known of each table, measured or projected. A table nobody knows of is not in it."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Requests of one sort to one model. `prompt`: the messages of one of them, as first sent."""

    alias: str
    purpose: str
    requests: Span
    prompt: PromptSize
    reply: Reply
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run of a stage asks, what it makes for later stages, and what was assumed (sentences with numbers)."""

    asks: Sequence[Ask] = ()
    makes: Known = field(default_factory=dict)
    assumes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class View:
    """What an estimate may look at. `member`: the target or judge of a stage that fans out."""

    settings: Settings
    models: Mapping[str, ModelSpec]
    known: Known
    member: str | None = None

    @property
    def alias(self) -> str:
        """The member, where there must be one."""
        assert self.member is not None
        return self.member

    def meter(self, alias: str) -> Meter:
        return Meter(self.models[alias])

    def portions(self, table: str) -> Sequence[Portion]:
        return self.known.get(table, ())

    def rows(self, table: str, language: str | None = None) -> Span:
        """How many rows a table has, or may have of a language."""
        portions = self.portions(table)
        if language is None:
            return Span.total(portion.rows for portion in portions)
        return Span.total(_of_language(portion, language) for portion in portions)

    def kind(self, table: str, language: str | None, of: str = "") -> Kind | None:
        """What rows of a language (None: of any) hold at least and at most; None where the table has no such row."""
        kinds = [kind for portion in self.portions(table) for kind in portion.kinds]
        found = [kind for kind in kinds if language in (None, kind.language) and kind.of in ("", of)]
        if not found:
            return None
        short, long = (pick(_sizes(found, end), key=lambda one: one[0])[1] for pick, end in ((min, 0), (max, 1)))
        return Kind(language or found[0].language, short, long, of)


def _of_language(portion: Portion, language: str) -> Span:
    languages = {kind.language for kind in portion.kinds}
    if language not in languages:
        return Span(0, 0)
    return portion.rows if len(languages) == 1 else Span(0, portion.rows.high)


def _sizes(kinds: Sequence[Kind], end: int) -> list[tuple[int, Any]]:
    """The short (0) or long (1) rows, each with its size."""
    return [(len(str(kind.both[end])), kind.both[end]) for kind in kinds]


Estimator = Callable[[View], Estimate]


def estimator_of(stage: Stage) -> Estimator | None:
    """The `estimate` of the stage's package; None for a package without such a module."""
    return _estimator(stage.package)


@cache
def _estimator(package: str) -> Estimator | None:
    name = f"{package}.estimate"
    if not package or importlib.util.find_spec(name) is None:
        return None
    return cast(Estimator, importlib.import_module(name).estimate)
