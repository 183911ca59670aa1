"""Contact data of people in texts: found, counted by kind, and put out of sight.

Phone numbers are those that the numbering plans of the United States and China, or an international prefix, make
valid; payment cards and Chinese identity numbers must have a right check digit. Postal addresses are told by their
form (a house number with a street), in English and Chinese.

>>> hide("Write to ann@example.org or call +49 30 901820.")
('Write to [email] or call [phone].', Counter({'email': 1, 'phone': 1}))
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import phonenumbers

REGIONS = ("US", "CN")
"""Whose phone numbers are known without a country code."""

_DIGITS = re.compile(r"\d")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NETWORK = re.compile(r"(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.])")
_US_NUMBER = re.compile(r"(?<!\d)(?!000|666|9\d\d)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?!\d)")
_CN_NUMBER = re.compile(r"(?<!\d)[1-9]\d{16}[\dXx](?![\dA-Za-z])")
_CARD = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_STREETS = "Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Highway|Hwy|Parkway|Pkwy"
_ADDRESS = re.compile(
    rf"(?<!\w)\d{{1,5}}[A-Za-z]? (?:[NSEW]\.? )?(?:[A-Z][\w'’.-]* ){{1,3}}(?:{_STREETS})\b\.?"
    r"(?:,? (?:Apt|Apartment|Suite|Unit|#) ?\w{1,5})?"
    r"|[\u4e00-\u9fff]{2,8}(?:路|街|大道|巷|弄|胡同)\s*\d{1,5}\s*号(?:\s*\d{1,4}\s*(?:号楼|栋|幢|单元|室))*"
)


def hide(text: str) -> tuple[str, Counter[str]]:
    """The text with a placeholder such as `[email]` for each piece of contact data, and how many of which kind."""
    counts: Counter[str] = Counter()
    for kind, find in _KINDS.items():
        spans = list(find(text))
        for start, stop in reversed(spans):
            text = f"{text[:start]}[{kind}]{text[stop:]}"
        counts[kind] += len(spans)
    return text, +counts


def _matching(pattern: re.Pattern[str], is_one: Callable[[str], bool] = lambda found: True) -> Any:
    def find(text: str) -> Iterator[tuple[int, int]]:
        return (match.span() for match in pattern.finditer(text) if is_one(match[0]))

    return find


def _find_phones(text: str) -> list[tuple[int, int]]:
    if len(_DIGITS.findall(text)) < 7:
        return []
    spans: list[tuple[int, int]] = []
    for region in REGIONS:
        for match in phonenumbers.PhoneNumberMatcher(text, region):
            if not any(match.start < stop and start < match.end for start, stop in spans):
                spans.append((match.start, match.end))
    return sorted(spans)


def _is_card(number: str) -> bool:
    """Whether the check digit is right (Luhn's rule)."""
    digits = [int(digit) for digit in _DIGITS.findall(number)]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_identity_number(number: str) -> bool:
    """Whether the check character of a Chinese identity number is right (ISO 7064, MOD 11-2)."""
    weights: Sequence[int] = [pow(2, 17 - place, 11) for place in range(17)]
    total = sum(weight * int(digit) for weight, digit in zip(weights, number, strict=False))
    return "10X98765432"[total % 11] == number[-1].upper()


_KINDS: dict[str, Callable[[str], Any]] = {
    "email": _matching(_EMAIL),
    "identity number": _matching(_CN_NUMBER, _is_identity_number),
    "social security number": _matching(_US_NUMBER),
    "payment card": _matching(_CARD, _is_card),
    "network address": _matching(_NETWORK),
    "postal address": _matching(_ADDRESS),
    "phone": _find_phones,
}
"""In the order in which they are looked for: the more certain first, so that no number is two things."""
