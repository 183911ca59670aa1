"""The border between vendors and us: one exception type for what a provider did, and no key in it.

>>> redact("Incorrect API key provided: sk-abcdefghijklmnop")
'Incorrect API key provided: [key]'
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime

from tasks.foundation.errors import FailureKind, ModelError, ModelUnavailable
from tasks.foundation.llm.quota import Quota

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
    """One physical call failed. `retry_after_seconds`: what the provider asked us to wait, if it did; `quota`: what
    the response's headers said of the account's limits."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        attempts: int = 1,
        retry_after_seconds: float | None = None,
        quota: Quota | None = None,
    ) -> None:
        super().__init__(kind, message, attempts=attempts)
        self.retry_after_seconds = retry_after_seconds
        self.quota = quota


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


_CONTEXT = re.compile(
    r"context[_ ](?:length|window|size)|maximum (?:context|number of tokens|input)|prompt is too long"
    r"|too many (?:input )?tokens|exceeds? the (?:available context|maximum|model's)|input is too long"
    r"|string_above_max_length|input token count",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content[_ -]?(?:filter|policy|management)|responsibleai|moderation|safety (?:system|filter)", re.IGNORECASE
)
_NO_QUOTA = re.compile(
    r"insufficient[_ ](?:quota|balance|credit|funds)|billing_hard_limit|credit balance", re.IGNORECASE
)
_NO_MODEL = re.compile(r"model_not_found|model[^.]{0,80}(?:does not exist|not found|not supported)", re.IGNORECASE)
_NO_KEY = re.compile(r"invalid_api_key|api[_ ]key[_ ]invalid|api key not valid|incorrect api key", re.IGNORECASE)


def failure_of(
    status: int,
    detail: str,
    *,
    retry_after_seconds: float | None = None,
    secrets: Iterable[str | None] = (),
) -> ProviderFailure | ModelUnavailable:
    """The exception for an HTTP status and what the body says of it (code, type and message together).

    ModelUnavailable for what every further request would meet as well: a wrong key, an unknown model,
    an empty account. A request that the provider rejects for another reason is `refused`.
    """
    message = f"HTTP {status}: {brief(detail, secrets)}"
    if status in (401, 402) or _NO_KEY.search(detail) or (status < 500 and _NO_QUOTA.search(detail)):
        return ModelUnavailable(f"The provider rejects the key or the account. {message}")
    if status < 500 and _FILTERED.search(detail):
        return ProviderFailure("content_filter", message)
    if status == 403:
        return ModelUnavailable(f"The provider denies access. {message}")
    if status == 404 or (status in (400, 422) and _NO_MODEL.search(detail)):
        return ModelUnavailable(f"The provider does not know this model or URL. {message}")
    return ProviderFailure(_kind_of(status, detail), message, retry_after_seconds=retry_after_seconds)


def _kind_of(status: int, detail: str) -> FailureKind:
    if status == 429:
        return "rate_limited"
    if status in (408, 504):
        return "timeout"
    if status == 499:
        return "connection"
    if status >= 500 or status in (409, 425):
        return "server"
    if status == 413 or _CONTEXT.search(detail):
        return "context_overflow"
    return "refused"


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Seconds that the provider asks to wait: `retry-after-ms`, `retry-after` in seconds or as a date."""
    lowered = {name.lower(): value for name, value in headers.items()}
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(lowered[name]) / divisor
        except (KeyError, ValueError):
            continue
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    try:
        moment = parsedate_to_datetime(lowered["retry-after"])
    except (KeyError, ValueError):
        return None
    return max(0.0, moment.timestamp() - time.time())
