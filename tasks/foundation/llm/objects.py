"""Where in a reply its JSON objects stand and what they say, and which parts of it are reasoning.

Both are found in one pass over the text, whatever is in it: a reply of a million braces takes as long as
a reply of a million letters.

>>> [found.value for found in find_objects('A set {a, b}. {"score": 3} or {score: 4}')]
[{'score': 3}, {'score': 4}]
>>> without_reasoning('<think>3? {"score": 9}</think>{"score": 4}')
'{"score": 4}'
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tasks.foundation.llm.mend import INVISIBLE, mended_at

EDGES = " \t\r\n\u200b\u200e\u200f\u2060\ufeff\u00ad"
"""White space and marks without width, of no use at the ends of a text."""

MOST_OBJECTS = 200
"""A reply with more of them is no answer; nobody waits until a million pairs of braces have been read."""

MENDS_TRIED = 4
"""Objects of a text that may turn out beyond mending; each may be read to the text's end to find that out."""

_UNSEEN = re.compile(f"[{INVISIBLE}]")
_HIDES_BRACES = re.compile(r"['“‘「＂]|//|/\*|#")
_OBJECT_PATTERN = rf"\{{[\s{INVISIBLE}]*+(?:[\"'“‘「＂}}]|//|/\*|\#|[\w-]{{1,80}}+\s*+[:：])"
_OBJECT = re.compile(_OBJECT_PATTERN)
_BRACE_OR_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}"]', re.DOTALL)

_NAMES = r"(?i:think|thinking|thought|reasoning|seed:think|思考|思考过程|推理)"
_TAG_PATTERN = (
    rf"</?{_NAMES}>|\[/?THINK\]|◁/?think▷|<\|channel\|>(?:analysis|commentary|final)[^<]{{0,80}}<\|message\|>"
)
_SIGNS = ("<", "THINK]", "think▷")
"""A text with none of these has no tag: looked for first, because they are found sixty times as fast."""
_TAG = re.compile(_TAG_PATTERN)
_TAG_OR_OBJECT = re.compile(rf"{_TAG_PATTERN}|{_OBJECT_PATTERN}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may be a JSON object: `text[start:end]`, its `value`, and whether its syntax was `mended`.

    `fault` and `sentence` say why the value is none or cannot be used. `ends` False: it is broken, and where
    it ends is not known, so that everything up to the end of the text may be part of it.
    """

    start: int
    end: int
    value: Any = None
    mended: bool = False
    fault: Literal["unreadable", "invalid"] | None = None
    sentence: str = ""
    ends: bool = True


def find_objects(text: str) -> Iterator[Candidate]:
    """The top-level objects of `text` in order; a brace of ordinary prose is stepped over.

    An object nested in a broken one, or standing in a text of it, is never offered as if it were the reply.
    Stops after `MOST_OBJECTS` and one more.
    """
    objects = _Objects(text)
    position = seen = 0
    while seen <= MOST_OBJECTS and (begun := _OBJECT.search(text, position)):
        seen += 1
        found = objects.at(begun.start())
        yield found
        if not found.ends:
            return
        position = found.end


def without_reasoning(text: str) -> str:
    """`text` without its reasoning: what stands between tags such as `<think>` and `</think>`.

    Without an opening tag everything before the closing one is reasoning (some chat templates open it),
    without a closing tag everything after the opening one. Within a JSON object tags are data.
    """
    if not any(sign in text for sign in _SIGNS) or not _TAG.search(text):
        return text
    objects = _Objects(text)
    kept: list[str] = []
    begun = position = seen = 0
    nested = True
    while found := _TAG_OR_OBJECT.search(text, position):
        if found.group().startswith("{"):
            seen += 1
            if seen > MOST_OBJECTS or not (data := objects.at(found.start())).ends:
                break
            position = data.end
        elif _ends(found.group()):
            kept.clear()
            begun = position = found.end()
        else:
            kept.append(text[begun : found.start()])
            end, balanced = _end_of_reasoning(text, found.end(), nested=nested)
            if end is None:
                begun = len(text)
                break
            nested = nested and balanced
            begun = position = end
    return "".join([*kept, text[begun:]]).strip(EDGES)


def _end_of_reasoning(text: str, position: int, *, nested: bool) -> tuple[int | None, bool]:
    """Index after the tag that closes the reasoning, or None, and whether its tags were balanced.

    Reasoning that mentions its opening tag without closing it ends at the first closing tag; once that
    was seen in a text its tags are not counted any more (`nested` False).
    """
    depth, first_end = 1, None
    for tag in _TAG.finditer(text, position):
        ending = _ends(tag.group())
        depth += -1 if ending else 1
        if ending and first_end is None:
            first_end = tag.end()
        if depth == 0 or (first_end is not None and not nested):
            return tag.end(), depth == 0
    return first_end, False


def _ends(tag: str) -> bool:
    """Whether the tag closes reasoning rather than opens it."""
    return tag[1] == "/" or "final" in tag


class _Objects:
    """Reads the objects of a text: as JSON, else mended.

    Where no reading succeeds, the braces say where an object ends, unless it has what may hide some of them:
    quotes that JSON does not know, or comments. Once an unescaped quote has hidden one, braces are not
    counted any more, so that no part of a text is searched for them again and again.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._by_braces = True
        self._mends_left = MENDS_TRIED

    def at(self, start: int) -> Candidate:
        """The object that begins with the brace at `start`."""
        end = _closing_brace(self._text, start) if self._by_braces else None
        self._by_braces = end is not None
        sentence = "Your reply ended before the JSON object was complete."
        if end is not None:
            pairs = _Pairs()
            try:
                value = _parsed(self._text[start:end], pairs)
                return Candidate(start, end, value, fault=pairs.fault, sentence=pairs.sentence)
            except ValueError as error:
                sentence = f"The JSON in your reply cannot be parsed: {error}."
            except RecursionError:
                sentence = "The JSON in your reply is nested too deeply."
        if self._mends_left:
            pairs = _Pairs()
            try:
                value, mended_end = mended_at(self._text, start, pairs)
                return Candidate(start, mended_end, value, mended=True, fault=pairs.fault, sentence=pairs.sentence)
            except ValueError:
                self._mends_left -= 1
        if end is None or _HIDES_BRACES.search(self._text[start:end]):
            return Candidate(start, len(self._text), fault="unreadable", sentence=sentence, ends=False)
        return Candidate(start, end, fault="unreadable", sentence=sentence)


class _Pairs:
    """Makes objects of their pairs; keeps in mind when one key had two different values."""

    def __init__(self) -> None:
        self.fault: Literal["invalid"] | None = None
        self.sentence = ""

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if not key.isascii():
                key = _UNSEEN.sub("", key)
            if key in found and json.dumps(found[key]) != json.dumps(value):
                self.fault = "invalid"
                self.sentence = f"The key {key!r} appears twice with different values."
            found[key] = value
        return found


def _parsed(source: str, pairs: _Pairs) -> Any:
    return json.loads(source, parse_constant=_no_constant, object_pairs_hook=pairs, strict=False)


def _no_constant(name: str) -> float:
    """json calls it for NaN, Infinity and -Infinity, which JSON does not have."""
    return math.nan if name == "NaN" else math.inf


def _closing_brace(text: str, start: int) -> int | None:
    """Index after the brace that closes `text[start]`, braces within strings not counted, or None."""
    depth = 0
    for token in _BRACE_OR_STRING.finditer(text, start):
        match token.group():
            case "{":
                depth += 1
            case "}":
                depth -= 1
                if depth == 0:
                    return token.end()
            case '"':
                return None
    return None
