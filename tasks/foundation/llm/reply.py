"""From what a model wrote to a checked value.

The text may hold reasoning, prose, code fences and several JSON objects; the last complete object
that validates wins. Validation is strict: 7.5 or "7" for an integer, `true` for a number, a score
outside its range and NaN are invalid, never rounded, cast or clamped. Syntax (quotes, trailing
commas) may be repaired; a reply that was cut off never is.

>>> class Verdict(BaseModel):
...     score: int
>>> read('Sure! ```json\\n{"score": 7}\\n```', Verdict, "stop").value
Verdict(score=7)
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import json_repair
from pydantic import BaseModel, ValidationError

SENTENCE_CHARACTERS = 700
"""A validation error shown to the model is cut to this length."""

_EDGE_INVISIBLE = "\ufeff\u200b\u2060\u200e\u200f\u00ad"
_ZERO_WIDTH = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad]")
_THINK = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPEN_THINK = re.compile(r"<(think|thinking|reasoning)>.*\Z", re.DOTALL | re.IGNORECASE)
_CLOSE_THINK = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_BRACE_OR_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}"]', re.DOTALL)
_OBJECT_START = re.compile("\\{[\\s\u200b-\u200f\u2060-\u2064\ufeff\u00ad]*" r"(?:[\"'“”‘’}]|[\w-]+\s*[:：])")


class BadReply(Exception):
    """The reply cannot be used. `sentence` says why in words fit for the re-ask."""

    def __init__(self, kind: Literal["unreadable", "invalid", "truncated"], sentence: str) -> None:
        super().__init__(sentence)
        self.kind: Literal["unreadable", "invalid", "truncated"] = kind
        self.sentence = _bounded(sentence)


@dataclass(frozen=True, slots=True)
class Reading:
    """A usable reply: `value` as asked for, and whether its syntax had to be repaired."""

    value: Any
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A JSON object as found in the text. `closed` False: the text ends inside it."""

    source: str
    closed: bool
    in_string: bool = False


def read(text: str, model: type[BaseModel] | None, finish_reason: str) -> Reading:
    """`text` as an instance of `model`, or as cleaned plain text when `model` is None.

    Raises BadReply: `truncated` when the reply was cut off before it was complete, `unreadable`
    when there is no JSON object in it or nothing at all, `invalid` when the object breaks the rules.
    """
    visible = without_reasoning(clean(text))
    cut_off = finish_reason == "length"
    if model is None:
        return _read_text(visible, cut_off)
    candidates = list(find_objects(visible)) or list(find_objects(_unquoted(visible)))
    if cut_off and (not candidates or not candidates[-1].closed):
        raise BadReply("truncated", "Your reply was cut off before the JSON object was complete.")
    if not candidates:
        what = "empty" if not visible else "without a JSON object"
        raise BadReply("unreadable", f"Your reply was {what}.")
    return _last_valid(candidates, model)


def clean(text: str) -> str:
    """`text` with surrogate pairs joined, lone surrogates as U+FFFD and no invisible marks at its ends.

    Joiners within the text stay: emoji, Persian and Arabic need them.
    """
    return encodable(text).strip(_EDGE_INVISIBLE + " \t\r\n")


def encodable(text: str) -> str:
    """`text` that any encoder takes: surrogate pairs joined, lone surrogates as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def without_reasoning(text: str) -> str:
    """`text` without `<think>…</think>` blocks, also when only one of the two tags is there.

    A reply that begins with its object has no reasoning before it; tags within are data.
    """
    if "<" not in text or text.startswith(("{", "`")):
        return text
    text = _THINK.sub("", text)
    text = _CLOSE_THINK.sub("", text)
    return _OPEN_THINK.sub("", text).strip(_EDGE_INVISIBLE + " \t\r\n")


def find_objects(text: str) -> Iterator[Candidate]:
    """The top-level JSON objects of `text` in order; a brace of ordinary prose is stepped over.

    An object nested in a broken one is never offered as if it were the reply.
    """
    position = text.find("{")
    while position >= 0:
        if not _OBJECT_START.match(text, position):
            position = text.find("{", position + 1)
            continue
        end, in_string = _end_of_object(text, position)
        if end is None:
            yield Candidate(text[position:], closed=False, in_string=in_string)
            return
        yield Candidate(text[position:end], closed=True)
        position = text.find("{", end)


def _end_of_object(text: str, start: int) -> tuple[int | None, bool]:
    """Index after the brace that closes `text[start]`, or None and whether a string is open."""
    depth = 0
    for token in _BRACE_OR_STRING.finditer(text, start):
        match token.group():
            case "{":
                depth += 1
            case "}":
                depth -= 1
                if depth == 0:
                    return token.end(), False
            case '"':
                return None, True
    return None, False


def _last_valid(candidates: list[Candidate], model: type[BaseModel]) -> Reading:
    """The last candidate that validates as it is, else the last that does once its syntax is mended.

    Raises BadReply with the trouble of the last candidate that could be parsed, else of the last.
    """
    troubles: list[tuple[Candidate, BadReply]] = []
    for candidate in reversed(candidates):
        try:
            return Reading(_validated(_parse(candidate), model))
        except BadReply as found:
            troubles.append((candidate, found))
    mended_troubles: list[BadReply] = []
    for candidate, trouble in troubles:
        try:
            return Reading(_validated(_mended(candidate, trouble), model), repaired=True)
        except BadReply as still:
            mended_troubles.append(still)
    raise next((worst for worst in mended_troubles if worst.kind == "invalid"), mended_troubles[0])


def _mended(candidate: Candidate, trouble: BadReply) -> Any:
    """The candidate without zero-width characters or with its syntax repaired; else raises `trouble`."""
    visible = _ZERO_WIDTH.sub("", candidate.source)
    if visible != candidate.source:
        try:
            return _parse(Candidate(visible, candidate.closed, candidate.in_string))
        except BadReply:
            pass
    if trouble.kind == "unreadable":
        return _parse_repaired(candidate, trouble)
    raise trouble


def _parse(candidate: Candidate) -> Any:
    """The candidate as strict JSON."""
    if not candidate.closed:
        raise BadReply("unreadable", "Your reply ended before the JSON object was complete.")
    try:
        return json.loads(candidate.source, parse_constant=_no_constant, object_pairs_hook=_no_duplicates, strict=False)
    except RecursionError:
        raise BadReply("unreadable", "The JSON in your reply is nested too deeply.") from None
    except ValueError as error:
        raise BadReply("unreadable", f"The JSON in your reply cannot be parsed: {error}.") from None


def _parse_repaired(candidate: Candidate, trouble: BadReply) -> Any:
    """The candidate with its syntax repaired; raises `trouble` where a repair would invent content."""
    source = candidate.source
    quote_trouble = candidate.in_string and source.rstrip("` \t\r\n").endswith("}")
    if not candidate.closed and not quote_trouble:
        raise trouble
    try:
        value = json_repair.loads(source, skip_json_loads=True)
    except (ValueError, RecursionError):
        raise trouble from None
    if not isinstance(value, dict) or _invented(value, source):
        raise trouble
    return value


def _invented(value: Any, source: str) -> bool:
    """Whether a repair put an empty text or a null where the source has none."""
    if isinstance(value, Mapping):
        return any(_invented(part, source) for part in value.values())
    if isinstance(value, list):
        return any(_invented(part, source) for part in value)
    if value == "" and isinstance(value, str):
        return not any(empty in source for empty in ('""', "''", "“”"))
    if value is None:
        return "null" not in source and "None" not in source
    return False


def _validated(value: Any, model: type[BaseModel]) -> BaseModel:
    """`value` as `model`, strictly; 7.0 passes for an integer because JSON knows one kind of number."""
    text = _json_of(value)
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        whole = _whole_numbers(json.loads(text), error)
        if whole is None:
            raise BadReply("invalid", _complaint(error)) from None
    try:
        return model.model_validate_json(json.dumps(whole), strict=True)
    except ValidationError as error:
        raise BadReply("invalid", _complaint(error)) from None


def _json_of(value: Any) -> str:
    """`value` as JSON that a strict parser takes: no NaN, no lone surrogate."""
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:
        raise BadReply("invalid", "NaN and infinities are not allowed; give a number.") from None
    return json.dumps(_without_surrogates(value)) if "\\ud" in text else text


def _whole_numbers(value: Any, error: ValidationError) -> Any | None:
    """`value` with 7.0 → 7 (in place) where an int was wanted; None: nothing to change."""
    changed = False
    for problem in error.errors(include_url=False, include_context=False):
        found = problem["input"]
        if problem["type"] == "int_type" and isinstance(found, float) and found.is_integer():
            changed = _replace(value, problem["loc"], int(found)) or changed
    return value if changed else None


def _replace(value: Any, location: tuple[int | str, ...], number: int) -> bool:
    """Puts `number` at `location` within `value`; False when a union's label makes the path unusable."""
    try:
        for step in location[:-1]:
            value = value[step]
        value[location[-1]] = number
    except (KeyError, IndexError, TypeError):
        return False
    return True


def _complaint(error: ValidationError) -> str:
    """The validation error as sentences for the model: where, what was wrong, what was found."""
    lines = []
    for problem in error.errors(include_url=False, include_context=False)[:6]:
        where = ".".join(str(step) for step in problem["loc"]) or "the object"
        found = _shown(problem["input"]) if problem["type"] != "missing" else ""
        lines.append(f"{where}: {problem['msg']}{found}.")
    return " ".join(lines)


def _shown(found: Any) -> str:
    shown = json.dumps(found, ensure_ascii=False, default=str)
    return f" (found {shown if len(shown) <= 80 else shown[:80] + '…'})"


def _no_constant(name: str) -> float:
    """json calls it for NaN, Infinity and -Infinity, which JSON does not have."""
    return math.nan if name == "NaN" else math.inf


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object, unless one key has two different values: then nobody knows which was meant."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise BadReply("invalid", f"The key {key!r} appears twice with different values.")
        found[key] = value
    return found


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(part) for key, part in value.items()}
    return [_without_surrogates(part) for part in value] if isinstance(value, list) else value


def _unquoted(text: str) -> str:
    """The inner text when the whole reply is one JSON string that holds the object, else nothing."""
    try:
        inner = json.loads(text) if text.startswith('"') else ""
    except ValueError:
        return ""
    return inner if isinstance(inner, str) else ""


def _read_text(text: str, cut_off: bool) -> Reading:
    if cut_off:
        raise BadReply("truncated", "Your reply was cut off before it was complete.")
    if not text:
        raise BadReply("unreadable", "Your reply was empty.")
    return Reading(text)


def _bounded(sentence: str) -> str:
    cut = sentence[:SENTENCE_CHARACTERS]
    return sentence if len(sentence) <= SENTENCE_CHARACTERS else cut + " …"


@lru_cache(maxsize=512)
def schema_of(model: type[BaseModel]) -> Mapping[str, Any]:
    """The reply model as a JSON schema: references inlined, every object closed, the same each time.

    A model that refers to itself keeps its `$defs`. The result is shared: do not change it.
    """
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    if any(_refers_to_itself(name, definitions) for name in definitions):
        schema["$defs"] = {name: _closed(part) for name, part in definitions.items()}
        return dict(_closed(schema))
    return dict(_closed(_inlined(schema, definitions)))


def _inlined(part: Any, definitions: Mapping[str, Any]) -> Any:
    """`part` with each `$ref` replaced by what it refers to; keys beside the reference win."""
    if isinstance(part, list):
        return [_inlined(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    beside = {key: _inlined(item, definitions) for key, item in part.items() if key != "$ref"}
    if "$ref" not in part:
        return beside
    return {**_inlined(definitions[part["$ref"].rsplit("/", 1)[-1]], definitions), **beside}


def _refers_to_itself(name: str, definitions: Mapping[str, Any]) -> bool:
    reached: set[str] = set()
    frontier = _references(definitions[name])
    while frontier:
        reached |= frontier
        frontier = {found for known in frontier for found in _references(definitions[known])} - reached
    return name in reached


def _references(part: Any) -> set[str]:
    if isinstance(part, list):
        return {found for item in part for found in _references(item)}
    if not isinstance(part, dict):
        return set()
    own = {part["$ref"].rsplit("/", 1)[-1]} if isinstance(part.get("$ref"), str) else set()
    return own | {found for item in part.values() for found in _references(item)}


def _closed(part: Any, *, named: bool = False) -> Any:
    """`part` with `additionalProperties: false` on objects and without pydantic's titles.

    `named`: `part` maps field names to schemas, so a field called "title" is no title.
    """
    if isinstance(part, list):
        return [_closed(item) for item in part]
    if not isinstance(part, dict):
        return part
    if named:
        return {key: _closed(item) for key, item in part.items()}
    result = {
        key: _closed(item, named=key in ("properties", "$defs")) if key not in ("enum", "const", "default") else item
        for key, item in part.items()
        if key != "title"
    }
    if "properties" in result:
        result.setdefault("additionalProperties", False)
    return result
