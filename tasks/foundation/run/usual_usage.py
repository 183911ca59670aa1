"""How requests of one purpose usually go with a model: how often they are asked again, how long the replies are, what
they decide.

From this store's earlier requests of the same stage, purpose and model; else from those to other models of its kind
(how long models in this process answer says nothing of those behind an API); else from configs/usual_usage.yaml.
"""

from __future__ import annotations

import json
import logging
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from tasks.foundation import CONFIGS
from tasks.foundation.errors import ConfigError, StoreError, TableError
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers import LOCAL_PROVIDERS
from tasks.foundation.llm.reply import said_in
from tasks.foundation.llm.request import Message
from tasks.foundation.run.context import read_rows
from tasks.foundation.run.cost_plan import Basis
from tasks.foundation.settings.strict_yaml import load_yaml
from tasks.foundation.store.commits import Commit, read_commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import all_commits
from tasks.foundation.tables import TABLES

log = logging.getLogger(__name__)

FEWEST = 5
"""Earlier requests from which on they say more than the table does."""
COMMITS_READ, PARTS_READ = 3, 8
"""Newest commits of a stage, and parts of each, that are read."""
LOOKED_AT = 200
"""Replies of a purpose and model that are read for what they decide."""

_WIDE = re.compile("[\u2e80-\U0010ffff]")
_Key = tuple[str, str, str]
"""Stage, purpose and alias."""


class _Closed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Ending(_Closed):
    """How replies say that a loop is over: `field` is `then` in its last `replies`, and `before` in those before (null:
    whatever it is)."""

    field: str
    before: str | None = None
    then: str
    replies: int = Field(default=1, ge=1)


class UsualReplies(_Closed):
    """Replies of one purpose, as the table has them."""

    text_tokens: float = Field(gt=0)
    """Of one text in the reply, without the labels and names around it."""
    requests_a_row: float = Field(default=1, gt=0)
    """Of a loop; of anything else the dry run counts them itself."""
    ending: Ending | None = None
    chances: Mapping[str, float] = {}
    """How often a yes-or-no field is true, by its name."""
    items: Mapping[str, float] = {}
    """How many items a list has, by its name."""


class _Table(_Closed):
    tokens_a_character: float = Field(gt=0)
    tokens_a_wide_character: float = Field(gt=0)
    wide_of_family: Mapping[str, float] = {}
    message_tokens: float = Field(ge=0)
    thinking_tokens: float = Field(ge=0)
    calls_a_request: float = Field(ge=1)
    longer_behind_an_api: float = Field(gt=0)
    tokens_per_second: Mapping[str, float]
    spread: Mapping[Basis, float]
    replies: Mapping[str, Mapping[str, UsualReplies]]


@cache
def usual_table() -> _Table:
    """configs/usual_usage.yaml, checked."""
    path = CONFIGS / "usual_usage.yaml"
    try:
        return _Table.model_validate(load_yaml(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from None


@dataclass(frozen=True, slots=True)
class UsualUsage:
    """What one request of a purpose usually takes with one model, and what its replies say."""

    basis: Basis
    n: int
    """How many earlier requests it rests on; 0: on the table."""
    calls: float
    """Physical calls a request."""
    completion_tokens: float | None
    """Of one call, thoughts included; None: as many as its texts and the reply's schema come to."""
    text_tokens: float
    thinking_tokens: float
    prompt_share: float
    """Prompt tokens that were reported for each that `count_tokens` counts."""
    cached_share: float
    """Of the prompt tokens, those that the provider read from its own cache."""
    call_seconds: float | None
    """None: as long as a reply takes at the `tokens_per_second` of the table."""
    tokens_per_second: float
    requests_a_row: float
    ending: Ending | None = None
    chances: Mapping[str, float] = field(default_factory=dict)
    items: Mapping[str, float] = field(default_factory=dict)

    @property
    def spread(self) -> float:
        """By which factor the real tokens may differ, in four of five runs."""
        return usual_table().spread[self.basis]


def count_tokens(text: str, family: str) -> float:
    """Tokens of a text by the width of its characters, without a tokenizer."""
    table = usual_table()
    wide = count_wide(text)
    of_wide = table.wide_of_family.get(family, table.tokens_a_wide_character)
    return (len(text) - wide) * table.tokens_a_character + wide * of_wide


def count_wide(text: str) -> int:
    """Characters of Chinese and other wide text."""
    return 0 if text.isascii() else len(_WIDE.findall(text))


def count_prompt_tokens(messages: Iterable[Message], family: str) -> float:
    """Tokens of a chat, with what its template puts around each message."""
    return sum(count_tokens(each.content, family) + usual_table().message_tokens for each in messages)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """Sums over the earlier requests of one stage, purpose and alias: means a request, of tokens and seconds a call."""

    kind: str
    n: int
    calls: float
    completion_tokens: float
    cached_share: float
    call_seconds: float | None
    rows: int
    prompt_share: float = 1.0
    chances: Mapping[str, float] = field(default_factory=dict)
    items: Mapping[str, float] = field(default_factory=dict)


class UsageHistory:
    """What is known of a store's earlier requests."""

    def __init__(self, earlier: Mapping[_Key, _Earlier] | None = None) -> None:
        self._earlier = dict(earlier or {})

    @staticmethod
    def of(layout: Layout, stages: Collection[str]) -> UsageHistory:
        """From the first parts of each stage's newest commits, of whichever builds: a store of millions of replies is
        not read for it. What cannot be read says nothing."""
        earlier: dict[_Key, _Earlier] = {}
        newest = sorted(all_commits(layout), key=lambda commit: commit.ended_at, reverse=True)
        for stage in stages:
            of_stage = [commit for commit in newest if commit.stage == stage][:COMMITS_READ]
            try:
                whole = [read_commit(layout, commit.build, commit.run) for commit in of_stage]
                earlier |= _read_earlier(layout, stage, [commit for commit in whole if commit is not None])
            except (StoreError, TableError) as error:
                log.warning("earlier replies of stage %s are not looked at: %s", stage, error)
        return UsageHistory(earlier)

    def usual(self, stage: str, purpose: str, spec: ModelSpec) -> UsualUsage:
        """How such a request usually goes."""
        own = self._earlier.get((stage, purpose, spec.alias))
        if own is not None and own.n >= FEWEST:
            return _from_earlier("own", [own], stage, purpose)
        alike = [
            one
            for (its_stage, its_purpose, _), one in self._earlier.items()
            if (its_stage, its_purpose) == (stage, purpose) and one.kind == _kind_of(spec.provider)
        ]
        if sum(one.n for one in alike) >= FEWEST:
            return _from_earlier("alike", alike, stage, purpose)
        return _from_table(stage, purpose, spec)


def _read_earlier(layout: Layout, stage: str, commits: Sequence[Commit]) -> dict[_Key, _Earlier]:
    """How the requests in some parts of these commits went, by purpose and alias; every request counts once."""
    calls, replies = (
        read_rows(
            layout, TABLES[table], [part.path for each in commits for part in each.tables.get(table, ())[:PARTS_READ]]
        )
        for table in ("llm_calls", "replies")
    )
    calls = calls.filter(pl.col("completion_tokens") > 0).unique("request_id", maintain_order=True)
    texts = {row[0]: row[1:] for row in replies.select("request_id", "prompt", "reply").iter_rows()}
    answers = pl.max_horizontal("attempts", 1)
    found: dict[_Key, _Earlier] = {}
    for (purpose, alias), own in calls.group_by("purpose", "alias", maintain_order=True):
        read = _Read()
        for row in own.head(LOOKED_AT).to_dicts():
            if row["prompt_tokens"] and row["request_id"] in texts:
                asked = row["prompt_tokens"] / max(row["attempts"], 1)
                read.add(row["family"], asked, *texts[row["request_id"]])
        attempts, tokens, cached, seconds = own.select(
            pl.col("attempts").mean(),
            (pl.col("completion_tokens") / answers).mean(),
            (pl.col("cached_tokens") / pl.col("prompt_tokens")).mean().fill_null(0.0),
            (pl.col("latency_seconds") / answers).mean(),
        ).row(0)
        rows = own["row_key"].n_unique()
        found[stage, str(purpose), str(alias)] = _Earlier(
            _kind_of(own["provider"][0]), own.height, attempts, tokens, cached, seconds, rows, **read.facts()
        )
    return found


def _from_earlier(basis: Basis, earlier: list[_Earlier], stage: str, purpose: str) -> UsualUsage:
    n = sum(one.n for one in earlier)
    timed = [one for one in earlier if one.call_seconds is not None]

    def mean(values: Iterable[tuple[float, float]]) -> float:
        pairs = list(values)
        return sum(weight * value for weight, value in pairs) / sum(weight for weight, _ in pairs)

    def by_name(name: str) -> dict[str, float]:
        keys = {key for one in earlier for key in getattr(one, name)}
        return {
            key: mean((one.n, getattr(one, name)[key]) for one in earlier if key in getattr(one, name)) for key in keys
        }

    return UsualUsage(
        basis,
        n,
        calls=mean((one.n, one.calls) for one in earlier),
        completion_tokens=mean((one.n, one.completion_tokens) for one in earlier),
        text_tokens=_of_table(stage, purpose).text_tokens,
        thinking_tokens=0,
        cached_share=mean((one.n, one.cached_share) for one in earlier),
        tokens_per_second=usual_table().tokens_per_second[earlier[0].kind],
        prompt_share=mean((one.n, one.prompt_share) for one in earlier),
        call_seconds=mean((one.n, one.call_seconds or 0.0) for one in timed) if timed else None,
        requests_a_row=n / sum(one.rows for one in earlier),
        ending=_of_table(stage, purpose).ending,
        chances=by_name("chances"),
        items=by_name("items"),
    )


def _from_table(stage: str, purpose: str, spec: ModelSpec) -> UsualUsage:
    table, usual = usual_table(), _of_table(stage, purpose)
    return UsualUsage(
        "table",
        0,
        calls=table.calls_a_request,
        completion_tokens=None,
        text_tokens=usual.text_tokens * (1 if spec.provider in LOCAL_PROVIDERS else table.longer_behind_an_api),
        thinking_tokens=table.thinking_tokens if spec.thinking else 0,
        prompt_share=1.0,
        cached_share=0.0,
        call_seconds=None,
        tokens_per_second=table.tokens_per_second[_kind_of(spec.provider)],
        requests_a_row=usual.requests_a_row,
        ending=usual.ending,
        chances=usual.chances,
        items=usual.items,
    )


def _of_table(stage: str, purpose: str) -> UsualReplies:
    """The table's entry; of a purpose that it does not know, one of middling length."""
    known = usual_table().replies
    return known.get(stage, {}).get(purpose) or known["any"]["any"]


def _kind_of(provider: str) -> str:
    return provider if provider in LOCAL_PROVIDERS else "api"


class _Read:
    """What some replies of one purpose and model say."""

    def __init__(self) -> None:
        self._counted = self._reported = 0.0
        self._truths: dict[str, list[bool]] = defaultdict(list)
        self._lengths: dict[str, list[int]] = defaultdict(list)

    def add(self, family: str, prompt_tokens: float, prompt: str, reply: str | None) -> None:
        messages = [Message(one["role"], one["content"]) for one in json.loads(prompt)]
        self._counted += count_prompt_tokens(messages, family)
        self._reported += prompt_tokens
        for name, value in _fields(_parsed(reply)):
            if isinstance(value, bool):
                self._truths[name].append(value)
            elif isinstance(value, list):
                self._lengths[name].append(len(value))

    def facts(self) -> dict[str, Any]:
        return {
            "prompt_share": self._reported / self._counted if self._counted else 1.0,
            "chances": {name: sum(values) / len(values) for name, values in self._truths.items()},
            "items": {name: sum(values) / len(values) for name, values in self._lengths.items()},
        }


def _parsed(reply: str | None) -> Any:
    said = said_in(reply or "")
    try:
        return json.loads(said[said.index("{") : said.rindex("}") + 1])
    except ValueError:
        return None


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Every field of an object and of what is in it, by name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name, inner
            yield from _fields(inner)
    elif isinstance(value, list):
        for item in value:
            yield from _fields(item)
