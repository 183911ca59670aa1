"""From page models to HTML. Whatever a template shows is text: made visible first (see `texts`), then escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape

from tasks.foundation.tables import TABLES
from tasks.foundation.tables.references import table_of_id
from tasks.metrics.contributions import Contribution
from tasks.report import numbers
from tasks.report.page import TEMPLATES as REPORT_TEMPLATES
from tasks.report.page import make_environment
from tasks.report.questions import Record
from tasks.viewer import addresses, texts
from tasks.viewer.cells import KEY
from tasks.viewer.lists import LISTS
from tasks.viewer.requests import Message
from tasks.viewer.talks import Judged

TEMPLATES = Path(__file__).parent / "templates"

_ID = re.compile(r"\b[a-z]+_[0-9a-f]{16}\b")

NAMED = {
    "conversations": "Conversations",
    "dialogues": "Dialogues",
    "interactions": "Interactions",
    "awareness_predictions": "Predictions",
    "metrics": "Metrics",
    "rejects": "Rejects",
    "llm_calls": "Requests",
}
"""Tables that every page of a build leads to, and how they are called there."""

LONGEST = 200_000
"""Characters of one text on a page; the rest is counted."""


def render(template: str, **values: Any) -> str:
    """A page as HTML."""
    return _environment().get_template(template).render(**values)


@cache
def read_style() -> str:
    """The report's style and what these pages need beside it."""
    files = (REPORT_TEMPLATES / "page.css", TEMPLATES / "viewer.css")
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@cache
def read_script() -> str:
    return (TEMPLATES / "viewer.js").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = make_environment(TEMPLATES, finalize=_shown)
    environment.globals |= {"to": addresses, "lists": LISTS, "tables_named": NAMED}
    environment.filters |= {
        "count": numbers.count,
        "interval": numbers.interval,
        "money": numbers.money,
        "number": numbers.number,
        "plural": numbers.plural,
        "seconds": numbers.seconds,
        "words": numbers.words,
        "cell": _cell,
        "common": _count_common,
        "cut": _tell_cut,
        "json": lambda text: texts.write_whole(text, is_json=True),
        "key_of": _key_of,
        "laid_out": texts.write_whole,
        "linked": _linked,
        "minute": _minute,
        "place": _place,
        "pull": _pull,
        "score": _score,
        "singular": lambda table: numbers.words(table.removesuffix("s")),
        "sums": _sums,
        "unit": _unit,
        "write": texts.write,
    }
    return environment


def _shown(value: Any) -> Any:
    """Of a text every character, or a sign for it; of an endless one the beginning."""
    if type(value) is not str:
        return value
    if len(value) > LONGEST:
        return f"{texts.visible(value[:LONGEST])}… ({len(value) - LONGEST:,} more characters)"
    return texts.visible(value)


def _cell(value: Any, build: str) -> str | Markup:
    """A value in a cell of a table; null is a sign."""
    if value is None:
        return Markup('<span class="soft">null</span>')
    return _linked(texts.brief(texts.write(value)), build)


def _linked(text: str, build: str) -> Markup:
    """A text whose ids lead to their rows."""
    parts, last = [], 0
    shown = str(_shown(text))
    for found in _ID.finditer(shown):
        if table_of_id(found[0]) is not None:
            address = addresses.of_id(build, found[0])
            parts += [escape(shown[last : found.start()]), Markup('<a href="{}">{}</a>').format(address, found[0])]
            last = found.end()
    return Markup("").join([*parts, escape(shown[last:])])


def _key_of(row: Record, table: str) -> str:
    """The key of a row in a line; of several columns without the first, which the page is about, if that is an id."""
    key = TABLES[table].key
    return texts.brief(" / ".join(str(row[column]) for column in key if row[column] is not None), 80)


def _minute(moment: datetime | None) -> str:
    return numbers.MISSING if moment is None else numbers.moment(moment.isoformat())


def _score(value: float | None) -> str:
    return numbers.MISSING if value is None else f"{value:.3g}"


def _pull(value: float | None) -> str:
    if value is None:
        return numbers.MISSING
    return f"{value:+.3g}".replace("-", "−") if abs(value) > 1e-12 else "0"


def _sums(judged: Judged) -> str:
    """`gpt: 3.5, 4, 2 · other: …`: each judge's sum of each group, or why there is none."""
    told = []
    for place, judge in enumerate(judged.judges):
        sums = []
        for heading, lines in judged.groups:
            scores = [marks[place].score for _, marks, _ in lines]
            known = [score for score in scores if score is not None]
            sums.append(f"{heading} {sum(known):g}" if len(known) == len(scores) else f"{heading} unscored")
        told.append(f"{judge} ({', '.join(sums)})")
    return " · ".join(told)


def _tell_cut(row: Mapping[str, Any]) -> str:
    """What a cell is of, but for metric and benchmark: `target mine, pool a, turn 3`."""
    parts = [f"{numbers.words(name)} {value}" for name, value in list_cut(row)]
    return ", ".join(parts)


def list_cut(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The parts of a cell's key that are not everything; those of its slice by their names."""
    columns = [name for name in KEY if name not in ("benchmark", "metric", "slice")]
    cut = [(name, str(row[name])) for name in columns if row[name] is not None]
    sliced = texts.parse(row["slice"])
    return [*cut, *((name, texts.write(value)) for name, value in sliced.items())] if isinstance(sliced, dict) else cut


def _unit(one: Contribution, build: str) -> Markup:
    """Where a unit of a cell can be read, or what it would have been."""
    unit = one.unit
    if unit.get("conversation_id"):
        return _link(addresses.conversation(build, unit["conversation_id"]), unit["conversation_id"])
    if unit.get("interaction_id"):
        return _link(addresses.interaction(build, unit["interaction_id"]), unit["interaction_id"])
    if unit.get("item_id") and unit.get("fault") != "infra":
        address = addresses.item(build, unit["item_id"], unit["target"], unit["sample"])
        return _link(address, f"{unit['item_id']} ({unit['task']})")
    missing = unit.get("chat_seed_id") or unit.get("episode_id") or unit.get("item_id") or ""
    return Markup('<span class="soft">{}</span> {}').format("none, of", _linked(str(missing), build))


def _place(row: Record, build: str) -> Markup:
    """Where a row of a list can be read."""
    if row.get("conversation_id"):
        turn = row.get("turn_index")
        name = row["conversation_id"] + (f", turn {turn}" if turn else "")
        return _link(addresses.conversation(build, row["conversation_id"], turn), name)
    if row.get("interaction_id"):
        return _link(addresses.interaction(build, row["interaction_id"]), row["interaction_id"])
    if row.get("item_id"):
        return _link(addresses.item(build, row["item_id"], row["target"], row["sample"]), row["item_id"])
    return _link(addresses.best(build, "verdicts", row), f"{row['dialogue_id']}, {row['element']}")


def _link(address: str, name: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(address, texts.visible(name))


def _count_common(messages: Sequence[Message], before: Sequence[Message]) -> int:
    """How many messages at the beginning are those of the call before."""
    same = 0
    for one, other in zip(messages, before, strict=False):
        if one != other:
            break
        same += 1
    return same
