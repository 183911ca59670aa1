"""JSON as models write it, read without guessing.

Only punctuation may differ from JSON: other quotes, full-width signs and digits, keys and words without
quotes, commas too many or too few, comments, Python's literals, quotes that should have been escaped.
Nothing is ever closed, dropped or turned into a number: `7/10`, `+7` and `−7` stay text, for a strict
model to refuse; a value left out, `7 out of 10` and an object that does not end are errors.

>>> mend_object("{'label': “agree”， score：７, /* sure */}", 0)
({'label': 'agree', 'score': 7}, 39)
>>> mend_object('{"score": 7 out of 10}', 0)
Traceback (most recent call last):
ValueError: expected a comma or a closing brace at character 12, found 'out of 10}'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

DEEPEST = 100
"""Objects and lists within one another; no reply model has more than a handful."""

INVISIBLE = "\u200b-\u200f\u2060-\u2064\ufeff\u00ad"
"""Characters without width, for a character class of a pattern: noise between tokens, in keys and in labels."""

_CLOSING = {'"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "＂": "＂"}
_INSIDE = {quote: re.compile(rf"(?:[^\\{close}]++|\\.)*+", re.DOTALL) for quote, close in _CLOSING.items()}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"} | {sign: sign for sign in "\"'\\/“”‘’"}

_COMMENT = r"//[^\n]{0,500}+(?:\n|\Z)|\#[^\n]{0,500}+(?:\n|\Z)|/\*(?:[^*]|\*(?!/)){0,500}+\*/"
_GAP_PATTERN = rf"(?:[\s{INVISIBLE}]++|{_COMMENT})*+"
_QUOTED_KEY = "(?:" + "|".join(rf"{quote}[^{close}\n]{{1,120}}+{close}" for quote, close in _CLOSING.items()) + ")"
_KEY_AHEAD = rf"(?:{_QUOTED_KEY}|[\w-]{{1,80}}+){_GAP_PATTERN}[:：]"
_COMMAS = rf"[,，،](?:{_GAP_PATTERN}[,，،])*+"

_GAP = re.compile(_GAP_PATTERN)
_COLON = re.compile(rf"{_GAP_PATTERN}[:：]")
_AFTER_FIELD = re.compile(
    rf"{_GAP_PATTERN}(?:{_COMMAS}{_GAP_PATTERN}(?=}}|{_KEY_AHEAD})|(?=}})|(?={_QUOTED_KEY}{_GAP_PATTERN}[:：]))"
)
_ANYTHING = re.compile("")
_AFTER_ITEM = re.compile(rf"{_GAP_PATTERN}(?:{_COMMAS}{_GAP_PATTERN}|(?=\]))")
_TWO_QUOTES = re.compile(rf"[\s{INVISIBLE}]*+[{''.join(_CLOSING)}]")
_BARE_KEY = re.compile(r"[\w-]{1,80}+")
_BARE = re.compile(rf"(?:(?!//|/\*)[^\s{INVISIBLE},，،:：{{}}\[\]\"'“”‘’「」＂])++")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(\.\d++)?(?:[eE][-+]?\d++)?", re.ASCII)
_LITERALS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_NO_NUMBERS = {"nan", "inf", "infinity"}
_FULL_WIDTH = {ord(wide): narrow for wide, narrow in zip("０１２３４５６７８９．－", "0123456789.-", strict=True)}


def mend_object(
    text: str, start: int, pairs_hook: Callable[[list[tuple[str, Any]]], Any] = dict
) -> tuple[dict[str, Any], int]:
    """The object that begins with the brace at `start` and the index after its closing brace.

    `pairs_hook` makes the objects of their pairs, as json's `object_pairs_hook`. Reads forwards only, so
    the time grows with the length. Raises ValueError where more than punctuation would have to change.
    """
    return _Reader(text, pairs_hook).object(start, DEEPEST)


class _Reader:
    """Each method takes a position and returns what stands there and the position after it."""

    def __init__(self, text: str, pairs_hook: Callable[[list[tuple[str, Any]]], Any]) -> None:
        self._text = text
        self._pairs_hook = pairs_hook

    def object(self, at: int, depth: int) -> tuple[Any, int]:
        pairs: list[tuple[str, Any]] = []
        at = self._past(_GAP, at + 1)
        while not self._text.startswith("}", at):
            key, at = self._key(at)
            if (colon := _COLON.match(self._text, at)) is None:
                raise _expected("a colon", self._text, at)
            value, at = self._value(self._past(_GAP, colon.end()), _AFTER_FIELD, depth)
            if (separator := _AFTER_FIELD.match(self._text, at)) is None:
                raise _expected("a comma or a closing brace", self._text, self._past(_GAP, at))
            pairs.append((key, value))
            at = separator.end()
        return self._pairs_hook(pairs), at + 1

    def _array(self, at: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        at = self._past(_GAP, at + 1)
        while not self._text.startswith("]", at):
            item, at = self._value(at, _AFTER_ITEM, depth)
            if (separator := _AFTER_ITEM.match(self._text, at)) is None:
                raise _expected("a comma or a closing bracket", self._text, self._past(_GAP, at))
            items.append(item)
            at = separator.end()
        return items, at + 1

    def _value(self, at: int, after: re.Pattern[str], depth: int) -> tuple[Any, int]:
        sign = self._text[at : at + 1]
        if sign in "{[" and sign:
            if depth <= 1:
                raise ValueError(f"objects and lists are nested more than {DEEPEST} deep")
            return self.object(at, depth - 1) if sign == "{" else self._array(at, depth - 1)
        if sign in _CLOSING:
            return self._quoted(at, after)
        return self._bare(at)

    def _key(self, at: int) -> tuple[str, int]:
        if self._text[at : at + 1] in _CLOSING:
            return self._quoted(at, _ANYTHING)
        if (word := _BARE_KEY.match(self._text, at)) is None:
            raise _expected("a key", self._text, at)
        return word.group(), word.end()

    def _quoted(self, at: int, after: re.Pattern[str]) -> tuple[str, int]:
        """A text; a quote within it that nothing fitting follows was meant to be escaped."""
        quote = self._text[at]
        end = at
        while True:
            end = self._past(_INSIDE[quote], end + 1)
            if not self._text.startswith(_CLOSING[quote], end):
                raise _expected(f"a closing {_CLOSING[quote]}", self._text, end)
            if after.match(self._text, end + 1):
                return _unescape(self._text[at + 1 : end]), end + 1
            if _TWO_QUOTES.match(self._text, end + 1):
                raise _expected("a comma between two texts", self._text, end + 1)

    def _bare(self, at: int) -> tuple[Any, int]:
        """A number, a literal, or a word that lacks its quotes."""
        found = _BARE.match(self._text, at)
        word = found.group().translate(_FULL_WIDTH) if found else ""
        if not any(map(str.isalnum, word)) or word == "undefined":
            raise _expected("a value", self._text, at)
        assert found is not None
        if number := _NUMBER.fullmatch(word):
            return (int(word) if word.lstrip("-").isdigit() else float(number.group())), found.end()
        if word.lstrip("-").lower() in _NO_NUMBERS:
            return float(word), found.end()
        return _LITERALS.get(word, found.group()), found.end()

    def _past(self, pattern: re.Pattern[str], at: int) -> int:
        """The end of what `pattern` matches at `at`; it may match nothing."""
        found = pattern.match(self._text, at)
        return found.end() if found else at


def _unescape(raw: str) -> str:
    """`raw` with JSON's escapes resolved; a backslash before anything else is an ordinary character."""
    if "\\" not in raw:
        return raw
    text = _ESCAPE.sub(lambda found: _read_escape(found.group(1), found.group(2)), raw)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # joins pairs


def _read_escape(code: str | None, sign: str) -> str:
    return chr(int(code, 16)) if code else _PLAIN_ESCAPES.get(sign, f"\\{sign}")


def _expected(what: str, text: str, at: int) -> ValueError:
    return ValueError(f"expected {what} at character {at}, found {text[at : at + 20]!r}")
