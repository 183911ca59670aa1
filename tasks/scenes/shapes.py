"""Which shape the rows of a dialogue corpus have: where utterances and speakers stand in one, or that a row is one
utterance. Common shapes are recognised from the first rows."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.foundation.errors import SourceError
from tasks.foundation.settings.sections import SceneSource
from tasks.foundation.sources import BadRow, Problem, SourceRow, open_source
from tasks.foundation.sources.literals import parse_cell
from tasks.foundation.sources.paths import find, has, list_paths
from tasks.foundation.sources.values import one_line, unless_blank

log = logging.getLogger(__name__)

Shape = Mapping[str, str]
"""What we need → its path, as `mapping` of a source's settings; `speakers_before` is a mark instead."""

OWN: Shape = {
    **{"dialogue": "dialogue", "speakers": "speakers"},
    **{"narrative": "narrative", "split": "split", "language": "language"},
}
"""The shape that needs no mapping. Its columns but the first may be missing."""
PEEKED_ROWS = 20
SHOWN_PATHS = 30
INSTRUCTIONS = ("system", "developer", "tool", "function")
"""Roles of what is said to a model or by a tool, beside two parties; of a pair that is called so, it is one of them."""

_LISTS = ("messages", "conversations", "conversation", "dialogue", "dialog", "turns", "utterances", "log")
_TEXTS = ("content", "value", "text", "utterance", "message")
_SPEAKERS = ("role", "from", "speaker", "name", "author", "who", "user", "agent")
_GROUPS = ("dialogue_id", "dialog_id", "conversation_id", "conv_id", "talk", "talk_id", "thread_id", "session_id")
_ORDERS = ("turn", "turn_id", "turn_index", "utterance_idx", "utterance_id", "index", "timestamp")
_NAMES = {("content", "role"): "messages", ("value", "from"): "sharegpt"}
_LONGEST_NAME = 40


def _entries() -> Iterator[tuple[str, Shape]]:
    """Lists of objects, and objects of lists, that have a text and who says it."""
    for text, speaker in itertools.product(_TEXTS, _SPEAKERS):
        for name, each in itertools.product(_LISTS, ("[]", "")):
            parts = {"dialogue": f"{name}{each}.{text}", "speakers": f"{name}{each}.{speaker}"}
            yield _NAMES.get((text, speaker), "turns"), parts


def _rows() -> Iterator[tuple[str, Shape]]:
    """One row an utterance."""
    for group, text, speaker in itertools.product(_GROUPS, _TEXTS, _SPEAKERS):
        for order in (*_ORDERS, None):
            ordered = {"order_by": order} if order else {}
            yield "rows", {"dialogue": text, "speakers": speaker, "group_by": group, **ordered}


SHAPES: Sequence[tuple[str, Shape]] = (
    ("samsum", {"dialogue": "dialogue", "speakers_before": ":"}),
    ("samsum", {"dialogue": "Best Generated Conversation", "speakers_before": ":"}),
    ("utterances", {**OWN, "speakers": "speaker"}),
    ("utterances", OWN),
    *_entries(),
    ("personachat", {"dialogue": "utterances[-1].history"}),
    ("dailydialog", {"dialogue": "dialog"}),
    ("dailydialog", {"dialogue": "utterances"}),
    ("dailydialog", {"dialogue": "turns"}),
    *_rows(),
)
"""Common shapes by name, in the order in which they are tried; one name may be of several."""


def shape_of(source: SceneSource) -> Shape:
    """The shape of a source: its `mapping`, or the common one that it names or that most of its first rows have.

    Raises SourceError where they have none, with the paths that there are.
    """
    if source.mapping:
        return {str(part): path for part, path in source.mapping.items()}
    peeked = [row.value for row in itertools.islice(open_source(source), PEEKED_ROWS) if row.problem is None]
    found = recognise(peeked, source.shape)
    if found is None and source.shape in (None, "utterances") and _may_be_own(peeked):
        return OWN  # each row says for itself what is wrong with it
    if found is None:
        raise _unknown(source, peeked)
    name, shape = found
    if shape != OWN:
        log.info("corpus %s: its rows have the shape %s (%s)", source.corpus, name, describe(shape))
    return shape


def _may_be_own(rows: Sequence[Any]) -> bool:
    return any(has(row, "dialogue") for row in rows) or not any(isinstance(row, Mapping) for row in rows)


def is_mapped(source: SceneSource) -> bool:
    """Whether a source has a shape, rather than a reader that knows its corpus."""
    return source.reader in ("mapped", "jsonl")


def recognise(rows: Sequence[Any], name: str | None = None) -> tuple[str, Shape] | None:
    """The first common shape (of this name) that more than half of the rows have; None for none."""
    wanted = [(each, shape) for each, shape in SHAPES if name in (None, each)]
    for each, shape in wanted:
        if _fits(rows, shape):
            return each, shape
    if len(rows) == 1 and isinstance(rows[0], Mapping):
        for inside in ("*", *(f"{key}[]" for key in rows[0]), *(f"{key}.*" for key in rows[0])):
            within = find(rows[0], inside)
            first = within[:PEEKED_ROWS] if isinstance(within, list) else ()
            for each, shape in wanted:
                if first and _fits(first, shape):
                    return each, {**shape, "rows": inside}
    return None


def describe(shape: Shape) -> str:
    """The shape as a mapping of the settings.

    >>> describe({"dialogue": "messages[].content", "speakers": "messages[].role"})
    'dialogue: messages[].content, speakers: messages[].role'
    """
    return ", ".join(f"{part}: {path}" for part, path in shape.items())


def read_shaped(source: SceneSource, shape: Shape) -> Iterator[SourceRow]:
    """The rows of a source, one a dialogue; of a shape with `group_by` all rows of a dialogue as one, and at most
    `source.limit` of these. Raises SourceError where a path of the shape leads nowhere in the first rows."""
    needed = [shape[part] for part in ("dialogue", "group_by", "order_by") if part in shape]
    free = {} if shape == OWN or not source.mapping else shape
    optional = [path for part, path in free.items() if part not in ("speakers_before", "rows") and path not in needed]
    if "group_by" not in shape:
        return open_source(source, required=needed, optional=optional, inside=shape.get("rows"))
    whole = source.model_copy(update={"limit": None})
    rows = open_source(whole, required=needed, optional=optional, inside=shape.get("rows"))
    return itertools.islice(group_rows(rows, shape, source.name), source.limit)


def group_rows(rows: Iterator[SourceRow], shape: Shape, name: str) -> Iterator[SourceRow]:
    """One row for those that follow one another with the same value at `group_by`: their objects, in order.

    A row with a problem of its own stays one. Raises SourceError where a dialogue goes on after another one began.
    """
    seen: set[int] = set()
    index = 0
    for key, some in itertools.groupby(rows, lambda row: row.problem or str(find(row.value, shape["group_by"]))):
        if isinstance(key, Problem):
            for row in some:
                yield SourceRow(index, row.where, problem=row.problem, text=row.text)
                index += 1
            continue
        together = list(some)
        if hash(key) in seen:
            raise SourceError(
                f"source {name}: expected the rows of a dialogue one after another, found more of {shape['group_by']} "
                f"{key[:60]!r} at {together[0].where}, after others. Sort the file by {shape['group_by']!r}."
            )
        seen.add(hash(key))
        yield SourceRow(index, together[0].where, _in_order([row.value for row in together], shape.get("order_by")))
        index += 1


def _in_order(rows: list[Any], order_by: str | None) -> list[Any]:
    if order_by is None:
        return rows
    places = [find(row, order_by) for row in rows]
    try:
        return [row for _, row in sorted(zip(map(float, places), rows, strict=True), key=lambda pair: pair[0])]
    except (TypeError, ValueError):
        return [row for _, row in sorted(zip(map(str, places), rows, strict=True), key=lambda pair: pair[0])]


@dataclass(frozen=True, slots=True)
class Said:
    """What a row says, not yet checked: utterances, their speakers (None: they take turns), and the former's path."""

    texts: Any
    speakers: Any
    path: str


def find_said(row: Any, shape: Shape) -> Said:
    """The utterances and speakers of a row; BadRow where speakers are to be in front of texts, and one has none."""
    path, whose = shape["dialogue"], shape.get("speakers")
    texts: Any
    speakers: Any
    if "group_by" in shape:
        texts = [find(one, path) for one in row]
        speakers = None if whose is None else [find(one, whose) for one in row]
    else:
        texts, speakers = _split_text(find(row, path)), part_of(row, shape, "speakers")
    if isinstance(texts, list) and "speakers_before" in shape:
        speakers, texts = _split_speakers(texts, shape["speakers_before"])
    if isinstance(speakers, list) and isinstance(texts, list):
        speakers = [str(name) if isinstance(name, int) and not isinstance(name, bool) else name for name in speakers]
        speakers, texts = _without_instructions(speakers, texts)
    return Said(texts, speakers, path)


def part_of(row: Any, shape: Shape, part: str) -> Any:
    """What a row has at the path of a part; None where there is no such path, or nothing at it."""
    if part not in shape:
        return None
    value = unless_blank(find(row[0] if isinstance(row, list) and row and "group_by" in shape else row, shape[part]))
    return _split_text(value) if part == "speakers" else value


def _split_text(value: Any) -> Any:
    """Utterances that are one text as a list: between DailyDialog's marks, or line by line."""
    value = parse_cell(value)
    if isinstance(value, str) and "__eou__" in value:
        return [part for part in value.split("__eou__") if part.strip()]
    lines = [line for line in value.splitlines() if line.strip()] if isinstance(value, str) else []
    return lines if len(lines) > 1 else value


def _split_speakers(texts: Sequence[Any], mark: str) -> tuple[list[str], list[str]]:
    pairs = [str(text).split("：" if mark == ":" and ":" not in str(text) else mark, 1) for text in texts]
    for number, pair in enumerate(pairs, start=1):
        if len(pair) < 2 or not 0 < len(pair[0].strip()) <= _LONGEST_NAME:
            raise BadRow(
                f"expected a speaker and {mark!r} in front of every utterance, found number {number} of {len(pairs)}: "
                f"{str(texts[number - 1])[:60]!r}"
            )
    return [one_line(name) for name, _ in pairs], [text.strip() for _, text in pairs]


def _without_instructions(speakers: list[Any], texts: list[Any]) -> tuple[list[Any], list[Any]]:
    """Without what a third party, which is none, says to a model or a tool to it."""
    if len(speakers) != len(texts):
        return speakers, texts
    kept = [(name, text) for name, text in zip(speakers, texts, strict=True) if str(name).lower() not in INSTRUCTIONS]
    if len({str(name) for name, _ in kept}) != 2:
        return speakers, texts
    return [name for name, _ in kept], [text for _, text in kept]


def _fits(rows: Sequence[Any], shape: Shape) -> bool:
    """Whether more than half of the rows have utterances, each with its speaker where the shape has speakers."""
    if "group_by" in shape:
        parts = [shape[part] for part in ("dialogue", "speakers", "group_by", "order_by") if part in shape]
        fit = [all(_is_single(find(row, path)) for path in parts) for row in rows]
    else:
        fit = [_has_dialogue(row, shape) for row in rows]
    return 2 * sum(fit) > len(rows)


def _is_single(value: Any) -> bool:
    return isinstance(value, str | int | float) and str(value).strip() != ""


def _has_dialogue(row: Any, shape: Shape) -> bool:
    if not has(row, shape["dialogue"]):
        return False
    try:
        said = find_said(row, shape)
    except BadRow:
        return False
    if not isinstance(said.texts, list) or not said.texts or not all(isinstance(text, str) for text in said.texts):
        return False
    if "speakers_before" in shape:
        return not has(row, "speakers") and len(set(said.speakers)) < max(len(said.texts), 3)
    if said.speakers is None:
        return shape == OWN or "speakers" not in shape
    return isinstance(said.speakers, list) and len(said.speakers) == len(said.texts) and None not in said.speakers


def _unknown(source: SceneSource, rows: Sequence[Any]) -> SourceError:
    paths = list(dict.fromkeys(path for row in rows for path in list_paths(row)))
    what = f"the shape {source.shape!r}" if source.shape else f"a common shape ({', '.join(_shape_names())})"
    return SourceError(
        f"source {source.name} lacks the column 'dialogue': expected rows of {what}, found "
        f"{', '.join(paths[:SHOWN_PATHS])}. "
        "Say in `mapping` where they have what is said, and by whom: {dialogue: talk[].text, speakers: talk[].who}."
    )


def _shape_names() -> list[str]:
    return list(dict.fromkeys(name for name, _ in SHAPES))
