"""The border between vendors and us: one exception type for what a provider did, and no key in it.

>>> redact("Incorrect API key provided: sk-abcdefghijklmnop")
'Incorrect API key provided: [key]'
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tasks.foundation.errors import FailureKind, ModelError

MESSAGE_CHARACTERS = 600
"""A vendor's error body can repeat the whole prompt; this much of it explains the failure."""

_KEY_SHAPES = re.compile(
    r"""
      \b(?:sk|pk|rk|gsk|xai|hf|nvapi)[-_][A-Za-z0-9_\-*.]{6,}       # OpenAI, Anthropic, DeepSeek, Groq, hub
    | \bAIza[0-9A-Za-z_\-]{10,} | \bya29\.[0-9A-Za-z_\-.]+ | \bAQ\.[0-9A-Za-z_\-]{10,}   # Google
    | (?<=Bearer\ )[^\s"',;]+ | (?<=bearer\ )[^\s"',;]+
    | (?<=[?&]key=)[^\s&"']+ | (?<=api_key=)[^\s&"']+ | (?<=api-key=)[^\s&"']+
    | (?<=://)[^\s/@:]+:[^\s/@]+(?=@)                               # user:password in a URL
    """,
    re.VERBOSE,
)


class ProviderFailure(ModelError):
    """One physical call failed. `retry_after_seconds`: what the provider asked us to wait, if it did."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        attempts: int = 1,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(kind, message, attempts=attempts)
        self.retry_after_seconds = retry_after_seconds


def redact(text: str, secrets: Iterable[str | None] = ()) -> str:
    """`text` without the given secrets and without anything shaped like a known vendor's key."""
    for secret in secrets:
        if secret and len(secret) >= 4:
            text = text.replace(secret, "[key]")
    return _KEY_SHAPES.sub("[key]", text)


def brief(text: object, secrets: Iterable[str | None] = ()) -> str:
    """One redacted line of at most `MESSAGE_CHARACTERS` characters."""
    line = " ".join(redact(str(text), secrets).split())
    return line if len(line) <= MESSAGE_CHARACTERS else line[:MESSAGE_CHARACTERS] + " …"
