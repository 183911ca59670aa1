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

from tasks.foundation.llm.mend import INVISIBLE, mended_at

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
    """A JSON object as found in the text, from `start` on. `closed` False: the text ends inside it."""

    source: str
    start: int
    closed: bool

    @property
    def end(self) -> int:
        return self.start + len(self.source)


def find_objects(text: str) -> Iterator[Candidate]:
    """The top-level JSON objects of `text` in order; a brace of ordinary prose is stepped over.

    An object nested in a broken one is never offered as if it were the reply.
    """
    ends = _Ends(text)
    position = 0
    while begun := _OBJECT.search(text, position):
        start = begun.start()
        end = ends.of(start)
        yield Candidate(text[start:end], start, closed=end is not None)
        if end is None:
            return
        position = end


def without_reasoning(text: str) -> str:
    """`text` without its reasoning: what stands between tags such as `<think>` and `</think>`.

    Without an opening tag everything before the closing one is reasoning (some chat templates open it),
    without a closing tag everything after the opening one. Within a JSON object tags are data.
    """
    if not any(sign in text for sign in _SIGNS) or not _TAG.search(text):
        return text
    ends = _Ends(text)
    kept: list[str] = []
    begun = position = 0
    nested = True
    while found := _TAG_OR_OBJECT.search(text, position):
        if found.group().startswith("{"):
            if (object_end := ends.of(found.start())) is None:
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


class _Ends:
    """Where the objects of a text end.

    Their braces say so unless a quote that was not escaped hides some of them; from there on the objects
    are read instead, so that no part of a text is searched for braces again and again.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._by_braces = True

    def of(self, start: int) -> int | None:
        """Index after the brace that closes `text[start]`, or None."""
        if self._by_braces and (end := _closing_brace(self._text, start)) is not None:
            return end
        self._by_braces = False
        try:
            return mended_at(self._text, start)[1]
        except ValueError:
            return None


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
