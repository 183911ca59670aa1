"""Which columns of a table name rows of another, by what key requests were made for a row, and what an id is of.

A column is called alike wherever it stands, so a table refers to each whose key, an id and what comes with it, is
among its columns; only columns of other names are declared here. Requests are known by the key of the item that they
were made for (`llm_calls.row_key`), which a stage makes of the columns that are declared here.

>>> [str(one) for one in references("scenes")], table_of_id("scene_0123456789abcdef")
(['seed_id → seed_dialogues.seed_id'], 'scenes')
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tasks.foundation.tables import TABLES


@dataclass(frozen=True, slots=True)
class Reference:
    """Columns of a table that hold the key, or `to_columns`, of rows of another."""

    columns: tuple[str, ...]
    to: str
    to_columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{', '.join(self.columns)} → {self.to}.{', '.join(self.to_columns)}"


_NAMED: Mapping[str, Mapping[str, str]] = {
    "pairings": {"character1_id": "characters", "character2_id": "characters"},
}
"""Columns that hold an id under another name than that of its own table."""

_MODELS = (
    *("target", "judge", "simulator", "partner", "writer", "annotator", "voter", "target_a", "target_b"),
    *("judge_a", "judge_b", "alias"),
)
"""Columns that hold the alias of a model, wherever they stand."""

_PEOPLE = frozenset({("human_ratings", "annotator")})
"""Those of them that hold a person's name."""

_RANKED = {"chat_seeds": Reference(("pool", "rank"), "persona_pool", ("pool", "rank"))}


@cache
def references(table: str) -> tuple[Reference, ...]:
    """What the rows of a table refer to, ids first, aliases of models last."""
    return (*_by_key(table), *_by_other_names(table), *_models(table))


def _by_key(table: str) -> Iterator[Reference]:
    """Of two tables with the same key, the later one refers to the earlier one. What a judge said, and what is shown
    beside another table, is nobody's parent."""
    names = list(TABLES)
    shown_beside = {other.beside for other in TABLES.values()}
    for other in TABLES.values():
        later = names.index(table) > names.index(other.name)
        if other.name in shown_beside or "judge" in other.key or not other.key[0].endswith("_id"):
            continue
        if set(other.key) < set(TABLES[table].columns) and (later or other.key != TABLES[table].key):
            yield Reference(other.key, other.name, other.key)
    if table in _RANKED:
        yield _RANKED[table]


def _by_other_names(table: str) -> Iterator[Reference]:
    for column, other in _NAMED.get(table, {}).items():
        yield Reference((column,), other, TABLES[other].key)


def _models(table: str) -> Iterator[Reference]:
    if table != "models":
        for column in TABLES[table].columns:
            if column in _MODELS and (table, column) not in _PEOPLE:
                yield Reference((column,), "models", ("alias",))


@cache
def referred_by(table: str) -> tuple[tuple[str, Reference], ...]:
    """The tables whose rows refer to rows of this one, each with how."""
    found = ((other, one) for other in TABLES for one in references(other) if one.to == table)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class AskedFor:
    """Under which key a stage asks for a row of a table: the columns in braces. `alias` is the column with the model
    that was asked, None where any was; `purposes` are those of the requests, empty for all."""

    stage: str
    row_key: str
    alias: str | None = None
    purposes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for _, name, _, _ in string.Formatter().parse(self.row_key) if name)

    def key_of(self, row: Mapping[str, Any]) -> str:
        """The `row_key` of the requests for a row."""
        return self.row_key.format_map(row)

    def row_of(self, row_key: str) -> dict[str, str] | None:
        """The values that a key was made of; None for a key of another kind."""
        pattern = re.sub(r"\\\{([a-z0-9_]+)\\\}", _group, re.escape(self.row_key))
        found = re.fullmatch(pattern, row_key, re.DOTALL)
        return found.groupdict() if found else None


def _group(name: re.Match[str]) -> str:
    """An alias may have slashes in it; ids and numbers have none."""
    return f"(?P<{name[1]}>{'.+' if name[1] in _MODELS else '[^/]+'})"


_PREDICTION = "{item_id}/{target}/{sample}"

ASKED_FOR: Mapping[str, tuple[AskedFor, ...]] = {
    "characters": (AskedFor("personas", "{character_id}"),),
    "seed_dialogues": (AskedFor("scenes", "{seed_id}"),),
    "scenes": (AskedFor("scenes", "{seed_id}"),),
    "pairings": (AskedFor("conflicts", "{pairing_id}"),),
    "conflicts": (AskedFor("conflicts", "{pairing_id}"),),
    "dialogues": (AskedFor("dialogues", "{pairing_id}"), AskedFor("voting", "{dialogue_id}")),
    "reviews": (AskedFor("voting", "{dialogue_id}", "annotator", ("review",)),),
    "votes": (AskedFor("voting", "{dialogue_id}", "voter", ("vote",)),),
    "vote_repeats": (AskedFor("voting", "{dialogue_id}", "voter", ("vote",)),),
    "verdicts": (AskedFor("voting", "{dialogue_id}"),),
    "awareness_predictions": (
        AskedFor("awareness", _PREDICTION),
        AskedFor("judging", f"awareness/{_PREDICTION}"),
    ),
    "awareness_scores": (AskedFor("judging", f"awareness/{_PREDICTION}", "judge"),),
    "interactions": (
        AskedFor("interaction", "{interaction_id}"),
        AskedFor("judging", "interaction/{interaction_id}"),
    ),
    "interaction_turns": (AskedFor("interaction", "{interaction_id}"),),
    "interaction_scores": (AskedFor("judging", "interaction/{interaction_id}", "judge"),),
    "chat_seeds": (AskedFor("chatseeds", "{chat_seed_id}"),),
    "conversations": (
        AskedFor("conversation", "{chat_seed_id}/{target}/{sample}"),
        AskedFor("judging", "final/{conversation_id}"),
    ),
    "conversation_turns": (AskedFor("judging", "turn/{conversation_id}/{turn_index}"),),
    "turn_judgements": (AskedFor("judging", "turn/{conversation_id}/{turn_index}", "judge"),),
    "final_intent_judgements": (AskedFor("judging", "final/{conversation_id}", "judge"),),
    "judgement_repeats": (AskedFor("judging", "{thing}", "judge"),),
}
"""By table, the requests for its rows."""


def asked_for(stage: str, row_key: str) -> list[tuple[str, dict[str, str]]]:
    """The tables with rows that a stage asked for under a key, each with the values that those rows have."""
    found = []
    for table, ways in ASKED_FOR.items():
        for way in ways:
            row = way.row_of(row_key) if way.stage == stage else None
            if row is not None and (table, row) not in found:
                found.append((table, row))
    return found


_PREFIXES = {"chatseed": "chat_seeds", "call": "llm_calls", "persona": "persona_candidates", "seed": "seed_dialogues"}
_PREFIXES |= {"item": "awareness_items", "episode": "interaction_episodes"}


def table_of_id(content_id: str) -> str | None:
    """The table whose rows have ids that begin so; None for what is no content id."""
    found = re.fullmatch(r"([a-z]+)_[0-9a-f]{16}", content_id)
    if found is None:
        return None
    table = _PREFIXES.get(found[1], f"{found[1]}s")
    return table if table in TABLES else None


def id_column(table: str) -> str:
    """The column of a table that holds the ids of its rows, where they have any."""
    return next(name for name in TABLES[table].key if name.endswith("_id"))
