"""Where in a reply its JSON objects stand and what they say, and which parts of it are reasoning or chat template.

Both are found in one pass over the text, whatever is in it: a reply of a million braces takes as long as
a reply of a million letters.

>>> [found.value for found in find_objects('A set {a, b}. {"score": 3} or {score: 4}')]
[{'score': 3}, {'score': 4}]
>>> spoken_part('<think>3? {"score": 9}</think>{"score": 4}<|im_end|>')
'{"score": 4}'
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tasks.foundation.llm.mend import INVISIBLE, mend_object

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

_NAMES = r"(?i:think|thinking|thought|reasoning|scratchpad|antthinking|seed:think|思考|思考过程|推理)"
_HARMONY = r"(?:[^<]|<\|constrain\|>){0,80}<\|message\|>"
_OPENS = rf"""<{_NAMES}>|\[THINK\]|◁think▷|<?\|startthink\|>?|<\|START_THINKING\|>|<\|begin_of_thought\|>|<\|think\|>
    |<\|inner_prefix\|>|<\|channel\|>(?:analysis|commentary){_HARMONY}|<\|channel>(?:thought|thinking|analysis|reasoning)?|<unused94>
    |\Aanalysis(?=[A-Z"“「\u3400-\u9fff]|(?s:\S.*assistantfinal))"""
_ENDS = rf"""</{_NAMES}>|\[/THINK\]|◁/think▷|<?\|endthink\|>?|<\|END_THINKING\|>|<\|end_of_thought\|>|<\|/think\|>
    |<\|inner_suffix\|>|<\|channel\|>final{_HARMONY}|<channel\|>|<unused95>|(?<=\S)assistantfinal
    |\[BEGIN[ ]FINAL[ ]RESPONSE\]"""
"""How models mark their reasoning: as tags, in the channels of Harmony and Gemma, and as these look without their
special tokens (`analysis…assistantfinal…`)."""

_ROLE = r"(?:assistant|model|user|system)?"
_TURNS = rf"""<\|im_(?:start\|>{_ROLE}|end\|>)|<\|start_header_id\|>\w{{0,20}}<\|end_header_id\|>|<\|eo[tm](?:_id)?\|>
    |<start_of_turn>{_ROLE}|<end_of_turn>|<\|turn>{_ROLE}|<turn\|>|<\|start\|>{_ROLE}|<\|(?:end|return|call|message)\|>
    |<\|(?:begin|end)_of_(?:text|solution)\|>|<\|endof(?:text|prompt)\|>|<\|startoftext\|>|<(?:[be]os|pad|eoa)>|\A<s>
    |</s>(?=\s*(?:\Z|<|\[INST\]))|\[/?INST\]|<\|(?:assistant|user|system|observation)\|>|\[END[ ]FINAL[ ]RESPONSE\]
    |<\|(?:START|END)_(?:OF_TURN_TOKEN|RESPONSE|TEXT)\|>|<\|(?:CHATBOT|USER|SYSTEM)_TOKEN\|>
    |<\|begin\|>{_ROLE}|<\|\w{{2,40}}\|>|<｜[\w▁]{{2,40}}｜>"""
"""Control tokens between turns: before the first word they are chat template, after it the reply is over."""

_SIGNS = ("<", "THINK]", "INST]", "RESPONSE]", "think▷", "think|", "analysis", "assistantfinal")
"""A text with none of these has no tag: looked for first, because they are found sixty times as fast."""
_MARKED = rf"(?P<opens>{_OPENS})|(?P<ends>{_ENDS})"
_TAG = re.compile(_MARKED, re.VERBOSE)
_TAG_OR_OBJECT = re.compile(rf"{_MARKED}|(?P<turn>{_TURNS})|(?P<object>{_OBJECT_PATTERN})", re.VERBOSE)
_WORDS_BEFORE = re.compile(r"[^\W\d_][^\n]*+\Z")
"""Words before a tag on its own line: a tag that is talked about, where nothing closes it."""
LONGEST_LINE = 300


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may be a JSON object: `text[start:end]` and its `value`.

    `fault` and `sentence` say why the value is none or cannot be used. `ends` False: it is broken, and where
    it ends is not known, so that everything up to the end of the text may be part of it.
    """

    start: int
    end: int
    value: Any = None
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


def spoken_part(text: str, *, prose: bool = True) -> str:
    """`text` without its reasoning, what stands between tags such as `<think>` and `</think>`, and without the control
    tokens of chat templates and what follows the one that ends the reply.

    Without an opening tag everything before the closing one is reasoning (some chat templates open it), without a
    closing tag everything after the opening one; but a plain tag that words of its line come before is part of
    `prose`. Within a JSON object tags are data.
    """
    if not any(sign in text for sign in _SIGNS):
        return text
    objects = _Objects(text)
    kept: list[str] = []
    begun = position = seen = 0
    end, nested, closes = len(text), True, True
    while found := _TAG_OR_OBJECT.search(text, position):
        match found.lastgroup:
            case "object":
                seen += 1
                if seen > MOST_OBJECTS or not (data := objects.at(found.start())).ends:
                    break
                position = data.end
            case "ends":
                kept.clear()
                begun = position = found.end()
            case "turn":
                if kept or text[begun : found.start()].strip():
                    end = found.start()
                    break
                begun = position = found.end()
            case _:
                after, balanced = _find_end_of_reasoning(text, found.end(), nested=nested) if closes else (None, False)
                closes = after is not None
                if not closes and prose and _is_mentioned(text, found):
                    position = found.end()
                    continue
                kept += [before] if (before := text[begun : found.start()]).strip(EDGES) else []
                nested = nested and balanced
                begun = position = end if after is None else after
    return "".join([*kept, text[begun:end]]).strip(EDGES)


def _is_mentioned(text: str, tag: re.Match[str]) -> bool:
    """Whether a plain tag, which is no token of a template, has words of its own line before it."""
    if not tag.group().startswith("<") or tag.group()[1] == "|":
        return False
    return _WORDS_BEFORE.search(text[max(0, tag.start() - LONGEST_LINE) : tag.start()]) is not None


def _find_end_of_reasoning(text: str, position: int, *, nested: bool) -> tuple[int | None, bool]:
    """Index after the tag that closes the reasoning, or None, and whether its tags were balanced.

    Reasoning that mentions its opening tag without closing it ends at the first closing tag; once that
    was seen in a text its tags are not counted any more (`nested` False).
    """
    depth, first_end = 1, None
    for tag in _TAG.finditer(text, position):
        ending = tag.lastgroup == "ends"
        depth += -1 if ending else 1
        if ending and first_end is None:
            first_end = tag.end()
        if depth == 0 or (first_end is not None and not nested):
            return tag.end(), depth == 0
    return first_end, False


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
        end = _find_closing_brace(self._text, start) if self._by_braces else None
        self._by_braces = end is not None
        sentence = "Your reply ended before the JSON object was complete."
        if end is not None:
            pairs = _Pairs()
            try:
                value = _parse(self._text[start:end], pairs)
                return Candidate(start, end, value, fault=pairs.fault, sentence=pairs.sentence)
            except ValueError as error:
                sentence = f"The JSON in your reply cannot be parsed: {error}."
            except RecursionError:
                sentence = "The JSON in your reply is nested too deeply."
        if self._mends_left:
            pairs = _Pairs()
            try:
                value, mended_end = mend_object(self._text, start, pairs)
                return Candidate(start, mended_end, value, fault=pairs.fault, sentence=pairs.sentence)
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


def _parse(source: str, pairs: _Pairs) -> Any:
    return json.loads(source, parse_constant=_no_constant, object_pairs_hook=pairs, strict=False)


def _no_constant(name: str) -> float:
    """json calls it for NaN, Infinity and -Infinity, which JSON does not have."""
    return math.nan if name == "NaN" else math.inf


def _find_closing_brace(text: str, start: int) -> int | None:
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
