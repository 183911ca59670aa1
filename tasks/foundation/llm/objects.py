"""Where in a reply its JSON objects stand, and which parts of it are reasoning.

Both are found in one pass over the text, whatever is in it: a reply of a million braces takes as long as
a reply of a million letters.

>>> [found.source for found in find_objects('A set {a, b}. {"score": 3} or {"score": 4}')]
['{"score": 3}', '{"score": 4}']
>>> without_reasoning('<think>3? {"score": 9}</think>{"score": 4}')
'{"score": 4}'
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.foundation.llm.mend import INVISIBLE

EDGES = " \t\r\n\u200b\u200e\u200f\u2060\ufeff\u00ad"
"""White space and marks without width, of no use at the ends of a text."""

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
    """A JSON object as found in the text, from `start` on. `closed` False: the text ends inside it.

    `in_string`: the text ends within a string of it, or one of its quotes was not escaped.
    """

    source: str
    start: int
    closed: bool
    in_string: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.source)


def find_objects(text: str) -> Iterator[Candidate]:
    """The top-level JSON objects of `text` in order; a brace of ordinary prose is stepped over.

    An object nested in a broken one is never offered as if it were the reply.
    """
    position = 0
    while begun := _OBJECT.search(text, position):
        start = begun.start()
        end, in_string = _end_of_object(text, start)
        if end is None:
            yield Candidate(text[start:], start, closed=False, in_string=in_string)
            return
        yield Candidate(text[start:end], start, closed=True)
        position = end


def without_reasoning(text: str) -> str:
    """`text` without its reasoning: what stands between tags such as `<think>` and `</think>`.

    Without an opening tag everything before the closing one is reasoning (some chat templates open it),
    without a closing tag everything after the opening one. Within a JSON object tags are data.
    """
    if not any(sign in text for sign in _SIGNS) or not _TAG.search(text):
        return text
    kept: list[str] = []
    begun = position = 0
    nested = True
    while found := _TAG_OR_OBJECT.search(text, position):
        if found.group().startswith("{"):
            object_end, _ = _end_of_object(text, found.start())
            if object_end is None:
                break
            position = object_end
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
