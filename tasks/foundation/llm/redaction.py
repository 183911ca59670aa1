"""Keys out of everything that is shown, logged or stored.

>>> redact("Incorrect API key provided: sk-abcdefghijklmnop")
'Incorrect API key provided: [key]'
>>> redact('{"api_key": "0123456789abcdef0123456789abcdef"}')
'{"api_key": "[key]"}'
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

SHOWN_CHARACTERS = 600
"""A vendor's error body can repeat the whole prompt; this much of it explains the failure."""

SHORTEST_SECRET = 4
"""Shorter ones are placeholders (`x`, `-`), and taking them out would leave nothing to read."""

_DASH = r"(?:[-_]|\\+u00(?:2d|5f)|%(?:2d|5f))"
_KEY_SIGN = r"(?:[A-Za-z0-9_\-*.]|\\+u00[0-9a-f]{2}|\\+/|%[0-9a-f]{2})"
_VALUE_SIGN = r"[^\s\"'\\,;&<>(){}\[\]]"
_NAMES = r"(?:api[-_ ]?key|x-goog-api-key|x-api-key|access[-_]?token|auth[-_]?token|client[-_]?secret|subscription-key)"
_SCHEMES = r"authorization(?:\\*[\"'])?\s*[:=]\s*(?:\\*[\"'])?(?:basic|bearer|token)\s+"

_KEY_SHAPES = re.compile(
    rf"""
      \b(?:sk|pk|rk|xai|nvapi|pplx|sess){_DASH}{_KEY_SIGN}{{6,}}+           # OpenAI, Anthropic, OpenRouter
    | \b(?:gsk|hf|fw|tgp|r8|csk|ghp|gho)(?:_|\\+u005f|%5f){_KEY_SIGN}{{6,}}+   # Groq, hub
    | \bAIza{_KEY_SIGN}{{10,}}+ | \bya29\.{_KEY_SIGN}{{6,}}+ | \bAQ\.{_KEY_SIGN}{{10,}}+   # Google
    | \b(?:AKIA|ASIA)[A-Z0-9]{{12,}}+
    | \beyJ[\w-]{{8,}}+\.[\w-]{{8,}}+(?:\.[\w-]++)?                             # JSON web tokens
    | (?<=bearer\ )(?!token|auth|realm|scheme|format){_VALUE_SIGN}{{6,}}+
    | (?<=://)[^\s/@:]{{0,200}}+:[^\s/@]{{1,200}}+(?=@)                         # user:password in a URL
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NAMED = re.compile(
    rf"""
      (?P<name>{_NAMES}(?:\\*["'])?\s*(?:[:=]|%3d|\\+u003d)\s*(?:\\*["'])?)
      (?!bearer\b|\[key\])(?=\S{{16}}|[^\s"'\d]*\d){_VALUE_SIGN}{{6,}}+
    | (?P<scheme>{_SCHEMES})(?!\[key\]){_VALUE_SIGN}++
    | (?P<query>[?&](?:key|token|sig|signature)=)(?!\[key\]){_VALUE_SIGN}++
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Keys without a shape of their own, by what stands before them."""


def redact(text: str, secrets: Iterable[str | None] = ()) -> str:
    """`text` without the given secrets, however they are escaped, and without what has the shape of a key; any encoder
    takes it."""
    text = encodable(text)
    for secret in secrets:
        if secret and len(secret) >= SHORTEST_SECRET:
            text = _spellings(secret).sub("[key]", text)
    text = _KEY_SHAPES.sub("[key]", text)
    return _NAMED.sub(lambda found: f"{found['name'] or found['scheme'] or found['query']}[key]", text)


def brief(text: object, secrets: Iterable[str | None] = ()) -> str:
    """One redacted line of at most `SHOWN_CHARACTERS` characters."""
    line = " ".join(redact(str(text), secrets).split())
    return line if len(line) <= SHOWN_CHARACTERS else line[:SHOWN_CHARACTERS] + " …"


def encodable(text: str) -> str:
    """`text` that any encoder takes: surrogate pairs joined, lone surrogates as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


@lru_cache(maxsize=16)
def _spellings(secret: str) -> re.Pattern[str]:
    """Matches `secret` as it is, with any of its characters escaped as in JSON, URLs or HTML, and wrapped."""
    signs = (
        rf"(?:\\*{re.escape(sign)}|\\+u{ord(sign):04x}|%{ord(sign):02x}|&\#(?:{ord(sign)}|x{ord(sign):x});)"
        for sign in secret
    )
    return re.compile(r"(?:\s|\\+[nrt])?".join(signs), re.IGNORECASE)
