"""Segmented Chinese text (LCCC) put together again; spaced English punctuation (DailyDialog) closed up."""

from __future__ import annotations

import itertools
import re

from tasks.foundation.texts.languages import HAN

_CJK = re.compile(f"[{HAN}\u3000-\u303f\uff00-\uffef\u2018-\u201f\u2026\u2014\u00b7\uff5e]")
"""Han characters, Chinese and full-width punctuation."""
_ALPHANUMERIC = re.compile(r"[A-Za-z0-9À-ɏ]")
_CLOSING = frozenset(",.!?;:%)]}~")
_OPENING = frozenset("([{#@")


def rejoin(text: str) -> str:
    """Chinese text without the spaces of its segmentation.

    No space is left beside a Chinese character or punctuation mark; spaces between Latin words stay. Letters
    and digits that stand singly side by side (a corpus cut into characters: "h a p p y", "2 0 元") are joined,
    so "S E E D" becomes "SEED"; where two English words were cut into letters, the space between them is lost.
    Idempotent.

    >>> rejoin("我 用 S E E D ， good morning")
    '我用SEED，good morning'
    """
    tokens = text.split()
    if not tokens:
        return ""
    gaps = ["" if _joined(left, right) else " " for left, right in itertools.pairwise(tokens)]
    return tokens[0] + "".join(gap + token for gap, token in zip(gaps, tokens[1:], strict=True))


def _joined(left: str, right: str) -> bool:
    a, b = left[-1], right[0]
    if _CJK.match(a) or _CJK.match(b):
        return True
    if _ends_singly(left) and _starts_singly(right):
        return True
    if _ALPHANUMERIC.match(a) and b in _CLOSING:
        return True
    if a in _OPENING and _ALPHANUMERIC.match(b):
        return True
    return not _ALPHANUMERIC.match(a) and a == b


def _ends_singly(token: str) -> bool:
    """Whether the token's last character is a letter or digit with no other before it."""
    return bool(_ALPHANUMERIC.match(token[-1])) and not (len(token) > 1 and _ALPHANUMERIC.match(token[-2]))


def _starts_singly(token: str) -> bool:
    return bool(_ALPHANUMERIC.match(token[0])) and not (len(token) > 1 and _ALPHANUMERIC.match(token[1]))


_SPACED_MARK = re.compile(r"(?<=\S)\s+(?=[,.!?;:%)\]]+(?:\s|$|[\"'’”)]))")
_SPACED_CONTRACTION = re.compile(r"(?<=\w)\s*(['’])\s*(?=(?:s|m|re|ve|ll|d|t)\b(?!['’]))", re.IGNORECASE)
_SPLIT_NOT = re.compile(r"(?<=\w)\s+(?=n['’]t\b)")
_SPACED_PLURAL = re.compile(r"(?<=s) (['’])(?= \w)")
_RUN_ON = re.compile(r"(?<=[a-z]{2})([.!?])(?=[A-Z][a-z]*(?:['’ ,.!?]|$))")


def tidy(text: str) -> str:
    """English text with its punctuation where it belongs.

    Closes the space before a mark and inside a contraction, opens one where a sentence runs on. Idempotent;
    text that was written properly is left as it is but for runs of spaces.

    >>> tidy("Well , that's too far.Can you change some money ?")
    "Well, that's too far. Can you change some money?"
    >>> tidy("I ’ m sure it do n't matter , it's ten minutes ' walk .")
    "I’m sure it don't matter, it's ten minutes' walk."
    """
    text = " ".join(text.split())
    text = _SPACED_MARK.sub("", text)
    text = _SPACED_PLURAL.sub(r"\1", text)
    text = _SPLIT_NOT.sub("", text)
    text = _SPACED_CONTRACTION.sub(r"\1", text)
    return _RUN_ON.sub(r"\1 ", text)
