"""From what a model wrote to a checked value, and the schema that it was asked to keep to.

The text may hold reasoning, prose, code fences and several JSON objects; the last complete object
that validates wins. Syntax is read leniently (see mend.py), content never: a score outside its range,
7.5 or "7" for an integer, `true` for a number and NaN are invalid, never rounded, cast or clamped (7.0 is
7: JSON knows one kind of number); a label of a closed set counts only as it is spelt there, so `Agree`
is not `agree`; a key given twice with different values and an object that does not end are no answer.

>>> class Verdict(BaseModel):
...     score: int
>>> read('Sure! ```json\\n{"score": 7}\\n```', Verdict, "stop")
Verdict(score=7)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from tasks.foundation.errors import FailureKind, ModelUnavailable
from tasks.foundation.llm.mend import INVISIBLE
from tasks.foundation.llm.objects import EDGES, MOST_OBJECTS, Candidate, find_objects, spoken_part
from tasks.foundation.llm.redaction import encodable
from tasks.foundation.texts.replies import LIMIT, MEANING_ZH, NAMES_ZH, Manner, PartsReply, part_model

WORDS = "x-words"
"""Key in a schema for the form in words: how many words a text may have."""

SENTENCE_CHARACTERS = 700
"""A validation error shown to the model is cut to this length."""

_UNSEEN = re.compile(f"[{INVISIBLE}]")
_GOES_ON = re.compile(r"[^{}\"'“‘「＂]*+[\"'“‘「＂][^{}]*+\}")
"""After an object: a quote and then a brace that closes nothing. A text of it held an unescaped quote."""
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],"]', re.DOTALL)
_NOTHING_MORE = re.compile(rf"[\s{INVISIBLE}`\]\"'”’」]*+")


class BadReply(Exception):
    """The reply cannot be used. `sentence` says why in words fit for the re-ask."""

    def __init__(self, kind: Literal["unreadable", "invalid", "truncated"], sentence: str) -> None:
        super().__init__(sentence)
        self.kind: Literal["unreadable", "invalid", "truncated"] = kind
        self.sentence = _shorten(sentence)


def read(text: str, model: type[BaseModel] | None, finish_reason: str, cut: list[str] | None = None) -> Any:
    """`text` as an instance of `model`, or as cleaned plain text when `model` is None.

    Of a `PartsReply` those parts are kept that can be used, if any can. `cut` gets the names of the fields whose texts
    were far longer than their limit, and are cut.

    Raises BadReply: `truncated` when the reply was cut off before it was complete, `unreadable`
    when there is no complete JSON object in it or nothing at all, `invalid` when the object breaks
    the rules. `finish_reason` "length" means that more was to come: an object counts only if nothing
    but white space, a closing fence or a closing bracket follows it.
    """
    visible = spoken_part(clean(text), prose=model is None)
    cut_off = finish_reason == "length"
    if model is None:
        return _read_text(text, visible, cut_off)
    candidates = list(find_objects(visible))
    if not candidates and (inner := _unquote(visible)):
        visible, candidates = inner, list(find_objects(inner))
    cut = [] if cut is None else cut
    if cut_off and not _is_whole(visible, candidates):
        if issubclass(model, PartsReply) and candidates and (parts := _read_parts(visible, candidates[-1], model, cut)):
            return parts
        raise BadReply("truncated", "Your reply was cut off before the JSON object was complete.")
    if not candidates:
        raise BadReply("unreadable", "Your reply was without a JSON object." if visible else _describe_silence(text))
    if len(candidates) > MOST_OBJECTS:
        raise BadReply("unreadable", f"Your reply held more than {MOST_OBJECTS} JSON objects.")
    try:
        return _find_last_valid(visible, candidates, model, cut)
    except RecursionError:
        raise BadReply("unreadable", "The JSON in your reply is nested too deeply.") from None


def clean(text: str) -> str:
    """`text` with surrogate pairs joined, lone surrogates as U+FFFD and no invisible marks at its ends.

    Joiners within the text stay: emoji, Persian and Arabic need them.
    """
    return encodable(text).strip(EDGES)


def said_in(text: str) -> str:
    """The words of a reply that a reader gets to see: without reasoning, control tokens and marks at its ends."""
    return spoken_part(clean(text))


def _read_text(text: str, visible: str, cut_off: bool) -> str:
    if cut_off:
        raise BadReply("truncated", "Your reply was cut off before it was complete.")
    if not visible:
        raise BadReply("unreadable", _describe_silence(text))
    return visible


def _describe_silence(text: str) -> str:
    return "Your reply held reasoning and no answer." if clean(text) else "Your reply was empty."


def _unquote(text: str) -> str:
    """The inner text when the whole reply is one JSON string that holds the object, else nothing."""
    try:
        inner = json.loads(text) if text.startswith('"') else ""
    except ValueError:
        return ""
    return encodable(inner) if isinstance(inner, str) else ""


def _is_whole(text: str, candidates: Sequence[Candidate]) -> bool:
    """Whether a reply that was cut off had said all: its last object, and the list around it, are closed."""
    if not candidates or candidates[-1].fault == "unreadable":
        return False
    after = text[candidates[-1].end :]
    in_list = text[: candidates[0].start].rstrip().endswith("[")
    return _NOTHING_MORE.fullmatch(after) is not None and (not in_list or "]" in after)


def _read_parts(text: str, last: Candidate, model: type[PartsReply], cut: list[str]) -> PartsReply | None:
    """The parts that were complete when the object at `last` was cut off; None: there are none that can be used."""
    closed = _close_after_last_part(text[last.start :], 2 if model.listed else 1)
    if closed is None or (found := next(find_objects(closed), None)) is None or found.fault is not None:
        return None
    parts = _keep_parts(found.value, model, cut)
    if parts is not None and model.listed:
        parts.lost.append(None)
    return parts


def _close_after_last_part(text: str, depth: int) -> str | None:
    """A JSON object that was cut off, closed after the last value that is complete within `depth` brackets."""
    opened: list[str] = []
    closed = None
    for token in _TOKEN.finditer(text):
        sign = token.group()
        if sign in "{[":
            opened.append("}" if sign == "{" else "]")
        elif sign in "}]" and opened:
            opened.pop()
            if len(opened) == depth:
                closed = text[: token.end()] + "".join(reversed(opened))
        elif sign == "," and len(opened) == depth:
            closed = text[: token.start()] + "".join(reversed(opened))
        elif sign == '"':  # a text that does not end
            break
    return closed


def _keep_parts(value: Any, model: type[PartsReply], cut: list[str]) -> PartsReply | None:
    """`model` with those of its parts that are as they should be; None where none is."""
    if not isinstance(value, dict):
        return None
    if not model.listed:
        tried = {name: _try({name: value[name]}, model, name, cut) for name in model.model_fields if name in value}
        kept = {name: part for name, part in tried.items() if part is not None}
        return model.of_parts(kept) if kept else None
    items = value.get(model.listed)
    if not isinstance(items, list):
        return None
    each = [(item, _try({model.listed: [item]}, model, model.listed, cut)) for item in items]
    kept_items = [part[0] for _, part in each if part is not None]
    lost = [item for item, part in each if part is None]
    return model.of_parts({model.listed: kept_items}, lost) if kept_items else None


def _try(value: Any, model: type[PartsReply], name: str, cut: list[str]) -> Any:
    """The field of that name, checked; None where it is not as it should be."""
    try:
        return getattr(_validate(value, part_model(model, name), cut), name)
    except BadReply:
        return None


def _find_last_valid(text: str, candidates: Sequence[Candidate], model: type[BaseModel], cut: list[str]) -> BaseModel:
    """The last candidate that validates.

    One that cannot be read makes the reply unreadable: what came before it was not the last word. Raises
    BadReply with the trouble of the last candidate that could be read, else of the last.
    """
    troubles: list[BadReply] = []
    next_start = len(text)
    for candidate in reversed(candidates):
        try:
            return _use(candidate, text[candidate.end : next_start], model, cut)
        except BadReply as trouble:
            troubles.append(trouble)
            if trouble.kind == "unreadable":
                break
        next_start = candidate.start
    raise next((worst for worst in troubles if worst.kind == "invalid"), troubles[0])


def _use(candidate: Candidate, after: str, model: type[BaseModel], cut: list[str]) -> BaseModel:
    """The candidate as `model`, or its good parts. `after`, what follows it, must not look like more of it."""
    if candidate.fault is not None:
        raise BadReply(candidate.fault, candidate.sentence)
    if _GOES_ON.match(after):
        raise BadReply("unreadable", "A brace in your reply closes nothing; quotes within texts must be escaped.")
    try:
        return _validate(candidate.value, model, cut)
    except BadReply:
        parts = _keep_parts(candidate.value, model, cut) if issubclass(model, PartsReply) else None
        if parts is None:
            raise
        return parts


def _validate(value: Any, model: type[BaseModel], cut: list[str]) -> BaseModel:
    """`value` as `model`, strictly, after what is the same in JSON and to the eye has been made the same."""
    text = _to_json(value)
    try:
        return _validate_json(text, model, cut)
    except ValidationError as error:
        same = _same_to_the_eye(json.loads(text), error)
        if same is None:
            raise BadReply("invalid", _describe_faults(error)) from None
    try:
        return _validate_json(json.dumps(same), model, cut)
    except ValidationError as error:
        raise BadReply("invalid", _describe_faults(error)) from None


def _validate_json(text: str, model: type[BaseModel], cut: list[str]) -> BaseModel:
    """`text` as `model`; `cut` gets more only where it is one."""
    cut_here: list[str] = []
    context = {"manner": getattr(model, "manner", None), "cut": cut_here}
    found = model.model_validate_json(text, strict=True, context=context)
    cut.extend(cut_here)
    return found


def _to_json(value: Any) -> str:
    """`value` as JSON that a strict parser takes: no NaN, no lone surrogate."""
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:
        raise BadReply("invalid", "NaN and infinities are not allowed; give a number.") from None
    return json.dumps(_drop_surrogates(value)) if "\\ud" in text else text


def _drop_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {_drop_surrogates(key): _drop_surrogates(part) for key, part in value.items()}
    return [_drop_surrogates(part) for part in value] if isinstance(value, list) else value


def _same_to_the_eye(value: Any, error: ValidationError) -> Any | None:
    """`value` with 7.0 → 7 where an integer was wanted and labels without invisible characters (in place).

    None: nothing to change.
    """
    changed = False
    for problem in error.errors(include_url=False, include_context=False):
        found = problem["input"]
        seen: int | str | None = None
        if problem["type"] == "int_type" and isinstance(found, float) and found.is_integer():
            seen = int(found)
        elif problem["type"] == "literal_error" and isinstance(found, str):
            seen = _UNSEEN.sub("", found)
        if seen is not None and seen is not found:
            changed = _replace(value, problem["loc"], seen) or changed
    return value if changed else None


def _replace(value: Any, location: tuple[int | str, ...], part: int | str) -> bool:
    """Puts `part` at `location` within `value`; False when a union's label makes the path unusable."""
    try:
        for step in location[:-1]:
            value = value[step]
        value[location[-1]] = part
    except (KeyError, IndexError, TypeError):
        return False
    return True


def _describe_faults(error: ValidationError) -> str:
    """The validation error as sentences for the model: where, what was wrong, what was found."""
    lines = []
    for problem in error.errors(include_url=False, include_context=False)[:6]:
        where = ".".join(str(step) for step in problem["loc"]) or "the object"
        found = _show(problem["input"]) if problem["type"] != "missing" else ""
        lines.append(f"{where}: {problem['msg']}{found}.")
    return " ".join(lines)


def _show(found: Any) -> str:
    shown = json.dumps(found, ensure_ascii=False, default=str)
    return f" (found {shown if len(shown) <= 80 else shown[:80] + '…'})"


def _shorten(sentence: str) -> str:
    cut = sentence[:SENTENCE_CHARACTERS]
    return sentence if len(sentence) <= SENTENCE_CHARACTERS else cut + " …"


@lru_cache(maxsize=512)
def schema_of(model: type[BaseModel]) -> Mapping[str, Any]:
    """The JSON schema that providers are sent: references inlined, every object closed, the same each time; fields are
    described in the language that a model is bound to, and texts have their limits.

    A model that refers to itself keeps its `$defs`. The result is shared: do not change it.
    """
    return drop_words(schema_with_words(model))


@lru_cache(maxsize=512)
def schema_with_words(model: type[BaseModel]) -> Mapping[str, Any]:
    """The same with `WORDS` beside the limits that count words."""
    schema = _tell(model.model_json_schema(), getattr(model, "manner", None))
    definitions = schema.pop("$defs", {})
    if any(_refers_to_itself(name, definitions) for name in definitions):
        schema["$defs"] = {name: _close(part) for name, part in definitions.items()}
        return dict(_close(schema))
    return dict(_close(_inline(schema, definitions)))


def drop_words(part: Any) -> Any:
    """`part` without `WORDS`."""
    if isinstance(part, list):
        return [drop_words(item) for item in part]
    return {key: drop_words(item) for key, item in part.items() if key != WORDS} if isinstance(part, dict) else part


def _tell(part: Any, manner: Manner | None) -> Any:
    """`part` with the meanings of its fields and its closed sets in the language of `manner`, and the limits of its
    texts in characters."""
    if isinstance(part, list):
        return [_tell(item, manner) for item in part]
    if not isinstance(part, dict):
        return part
    told = {key: _tell(item, manner) for key, item in part.items() if key not in (LIMIT, MEANING_ZH, NAMES_ZH)}
    if manner is not None and isinstance(part.get(LIMIT), list):
        name, times = part[LIMIT]
        told["maxLength"] = times * manner.limits.characters(name, manner.language)
        if manner.limits.in_words(name):
            told[WORDS] = times * getattr(manner.limits, name)
    if manner is not None and manner.language == "zh" and isinstance(part.get(MEANING_ZH), str):
        told["description"] = part[MEANING_ZH]
    if manner is not None and manner.language == "zh" and isinstance(part.get(NAMES_ZH), list):
        told["enum"] = part[NAMES_ZH]
    return told


def _inline(part: Any, definitions: Mapping[str, Any]) -> Any:
    """`part` with each `$ref` replaced by what it refers to; keys beside the reference win."""
    if isinstance(part, list):
        return [_inline(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    beside = {key: _inline(item, definitions) for key, item in part.items() if key != "$ref"}
    if "$ref" not in part:
        return beside
    return {**_inline(definitions[part["$ref"].rsplit("/", 1)[-1]], definitions), **beside}


def _refers_to_itself(name: str, definitions: Mapping[str, Any]) -> bool:
    reached: set[str] = set()
    frontier = _find_references(definitions[name])
    while frontier:
        reached |= frontier
        frontier = {found for known in frontier for found in _find_references(definitions[known])} - reached
    return name in reached


def _find_references(part: Any) -> set[str]:
    if isinstance(part, list):
        return {found for item in part for found in _find_references(item)}
    if not isinstance(part, dict):
        return set()
    own = {part["$ref"].rsplit("/", 1)[-1]} if isinstance(part.get("$ref"), str) else set()
    return own | {found for item in part.values() for found in _find_references(item)}


def _close(part: Any, *, named: bool = False) -> Any:
    """`part` with `additionalProperties: false` on objects and without pydantic's titles.

    `named`: `part` maps field names to schemas, so a field called "title" is no title.
    """
    if isinstance(part, list):
        return [_close(item) for item in part]
    if not isinstance(part, dict):
        return part
    if named:
        return {key: _close(item) for key, item in part.items()}
    result = {
        key: _close(item, named=key in ("properties", "$defs")) if key not in ("enum", "const", "default") else item
        for key, item in part.items()
        if key != "title"
    }
    if "properties" in result:
        result.setdefault("additionalProperties", False)
    return result


SILENT_REPLIES_AT_ONCE = 20
"""So many replies without a word, and none with one, stop a run at once."""

SILENT_REPLIES_OF_A_STAGE = 3
"""So many, and none with a word, stop a stage before it is committed; fewer may be chance."""


class SilentModels:
    """Models none of whose replies had a word so far, with those replies: such a server is set wrong, and its model
    is not to be scored 0."""

    def __init__(self) -> None:
        self._with_words: set[str] = set()
        self._silent: dict[str, list[str]] = {}

    def count(self, alias: str, kind: FailureKind | str | None, reply: str | None) -> None:
        """Counts how a request ended; ModelUnavailable when its model has replied often and never with a word."""
        if alias in self._with_words or reply is None:
            return
        if not is_silent(kind, reply):
            self._with_words.add(alias)
            return
        replies = self._silent.setdefault(alias, [])
        replies.append(reply)
        if len(replies) == SILENT_REPLIES_AT_ONCE:
            raise silence_error(alias, replies)


def is_silent(kind: FailureKind | str | None, reply: str | None) -> bool:
    """Whether a request that failed with `kind` got a reply of thoughts alone, or an empty one. What a filter withheld
    is no such reply, nor is one that never came."""
    return kind in ("unreadable", "truncated") and reply is not None and not said_in(reply)


def silence_error(alias: str, replies: list[str]) -> ModelUnavailable:
    """What to tell the user of a model all of whose replies are silent."""
    thoughts = sum(bool(clean(reply)) for reply in replies)
    held = "are empty" if not thoughts else f"{thoughts} of them hold thoughts alone, the others are empty"
    if thoughts == len(replies):
        held = "hold thoughts alone"
    return ModelUnavailable(
        f"Model {alias!r} has not said a word: all {len(replies)} replies {held}. Its server is not set for this use, "
        "and nothing was scored. Switch thinking off (extra_body of its entry in configs/models.yaml, for many "
        "servers chat_template_kwargs: {enable_thinking: false}), or give it the tokens to think and then to answer "
        "(max_tokens of the stage). Where the server itself was mended, draw new replies with --fresh."
    )
