"""The border between vendors and us: one exception type for what a provider did, and no key in it.

What a failure is depends on its HTTP status and on the sentences that vendors use; the cases of
tests/data/provider_failures.yaml are the reference. Only what an error says of itself is looked at
(`error_text`), never what it repeats of the request, whose texts may say anything.

>>> classify_failure(429, "insufficient_quota You exceeded your current quota")
ModelUnavailable('The provider rejects the key or the account. HTTP 429: insufficient_quota You exceeded your \
current quota')
>>> classify_failure(429, "Rate limit reached. Please try again in 1.5s").retry_after_seconds
1.5
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any

from tasks.foundation.errors import ColloquyError, FailureKind, ModelError, ModelUnavailable
from tasks.foundation.llm.limits.rates import Quota
from tasks.foundation.llm.redaction import brief

SENTENCE_CHARACTERS = 400
"""So much of each sentence of an error is looked at; the reason stands at its beginning."""


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


class Gone(Exception):
    """The provider does not know the batch job or the file (any more)."""


class Border(AbstractAsyncContextManager[None]):
    """Within it every exception but ours becomes what `translate` makes of it; TimeoutError after `seconds`.

    The vendor's own exception is let go, from the chain and from every frame of the traceback: it holds the
    request, and that holds the key. (A generator's context manager would keep it in a frame.)
    """

    def __init__(self, translate: Callable[[Exception], Exception], seconds: float | None = None) -> None:
        self._translate = translate
        self._limit = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError as late:
            error = late
        if not isinstance(error, Exception):
            _let_go(error)
            return
        failure = error if isinstance(error, ColloquyError | Gone) else self._translate(error)
        del kind, error, trace
        try:
            raise failure from None
        except Exception:
            _let_go(failure)
            raise


def _let_go(error: BaseException | None) -> None:
    """Takes off an exception what led to it."""
    if error is not None:
        error.__cause__ = error.__context__ = None


def unexpected_failure(error: BaseException, secrets: Iterable[str | None] = ()) -> ProviderFailure:
    """The failure for an exception that nobody foresaw, of a client library or of our own code around it."""
    return ProviderFailure("server", f"{type(error).__name__}: {brief(error, secrets)}")


_CONTEXT = re.compile(
    r"context[_ -]?(?:length|window|size|limit)|maximum (?:context|number of tokens|input|prompt|model) ?(?:length)?"
    r"|(?:prompt|input) (?:is|was) too (?:long|large)|prompt exceeds|(?:prompt|input)[^.]{0,80}too large for"
    r"|too many (?:input |total )?tokens|exceeds? the (?:available context|maximum|model's|configured limit)"
    r"|exceeded? model token limit|maximum allowed (?:input )?length|tokens? (?:count|limit)[^.]{0,60}exceed"
    r"|input tokens exceed|string_above_max_length|input token count|range of input length|payload size exceeds"
    r"|request too large|request_too_large|max_new_tokens`? must be|n_ctx|超长|超出最大长度",
    re.IGNORECASE,
)
_CONTEXT_IS_FULL = re.compile(
    r"context (?:size|length|window|limit)[^.]{0,40}exceed|exceed\w*[^.]{0,40}context|input is too large to process",
    re.IGNORECASE,
)
"""Also with HTTP 500, where a mere mention of the context would not do."""
_TOO_LARGE_FOR_A_MINUTE = re.compile(r"request too large", re.IGNORECASE)
_FILTERED = re.compile(
    r"content[_ -]?(?:filter|policy|policies|management|moderation)|responsibleai|moderation|data_?inspection"
    r"|safety (?:system|filter|polic)|usage (?:polic|guideline)|content exists risk|inappropriate content"
    r"|flagged|considered high risk|敏感内容|不安全",
    re.IGNORECASE,
)
_NO_ACCOUNT = re.compile(
    r"insufficient[_ ](?:\w+ )?(?:quota|balance|credit|funds)|balance is (?:too low|insufficient|not enough)"
    r"|billing_(?:hard_limit|not_active)|account is not active|credit balance|exceeded_current_quota|arrearage"
    r"|(?:key|spending|usage) limit (?:exceeded|reached)|account[^.]{0,40}(?:deactivated|suspended|disabled)"
    r"|\blimit: 0\b|欠费|余额不足",
    re.IGNORECASE,
)
_NO_KEY = re.compile(
    r"invalid_api_key|(?:incorrect|invalid) api[_ -]?key|api[_ ]key[_ ]?(?:is )?(?:invalid|expired|not valid|not found)"
    r"|令牌已过期",
    re.IGNORECASE,
)
_NO_ACCESS = re.compile(
    r"location is not supported|unsupported_country|access[_ ]?denied|free[_ ]tier[^.]{0,60}not available",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_?not_?found|deploymentnotfound|model[^.]{0,80}(?:does not exist|not exist|not found|is not supported)"
    r"|not a valid model|(?:invalid|unknown|no such) model|模型不存在",
    re.IGNORECASE,
)
_NO_SCHEMA = re.compile(
    r"response_?format|json_?schema|response_?schema|guided_json|grammar|structured output", re.IGNORECASE
)
_NO_SCHEMA_HINT = (
    ". Where a model cannot hold its replies to a JSON schema, its entry in configs/models.yaml says "
    "`structured: json_object` or `structured: prompt` (`colloquy evaluate --structured prompt`)"
)


def classify_failure(
    status: int,
    detail: str,
    *,
    retry_after_seconds: float | None = None,
    secrets: Iterable[str | None] = (),
) -> ProviderFailure | ModelUnavailable:
    """The exception for an HTTP status and what the body says of it (see `error_text`).

    ModelUnavailable for what every further request would meet as well: a wrong key, an unknown model,
    an empty account. A request that the provider rejects for another reason is `refused`. Status 200
    means that only the words tell; where they do not either it is `server`.
    """
    message = f"HTTP {status}: {brief(detail, secrets)}"
    if status in (401, 402, 407) or (status < 500 and (_NO_KEY.search(detail) or _NO_ACCOUNT.search(detail))):
        return ModelUnavailable(f"The provider rejects the key or the account. {message}")
    if status < 500 and status not in (408, 409, 425, 429) and _FILTERED.search(detail):
        return ProviderFailure("content_filter", message)
    if status == 403 or (status < 500 and _NO_ACCESS.search(detail)):
        return ModelUnavailable(f"The provider denies access. {message}")
    if status in (404, 405, 410) or 300 <= status < 400 or (status in (200, 400, 422) and _NO_MODEL.search(detail)):
        return ModelUnavailable(f"The provider does not know this model or URL. {message}")
    wait = _wait_in_words(detail) if retry_after_seconds is None else retry_after_seconds
    kind = _choose_kind(status, detail)
    if kind == "refused" and _NO_SCHEMA.search(detail):
        message += _NO_SCHEMA_HINT
    return ProviderFailure(kind, message, retry_after_seconds=wait)


def _choose_kind(status: int, detail: str) -> FailureKind:
    if status == 413 or (status in (200, 400, 422) and _CONTEXT.search(detail)):
        return "context_overflow"
    if status == 500 and _CONTEXT_IS_FULL.search(detail):
        return "context_overflow"
    if status in (429, 498):
        return "context_overflow" if _TOO_LARGE_FOR_A_MINUTE.search(detail) else "rate_limited"
    if status in (408, 504, 524, 598):
        return "timeout"
    if status == 499:
        return "connection"
    if status >= 500 or status in (200, 409, 425):
        return "server"
    return "refused"


def error_text(error: Any) -> str:
    """What an error in a body says of itself: codes, types and sentences, at most 400 characters of each.

    Not the input that validation errors repeat; of what a router was told upstream (`metadata.raw`) the same.
    """
    if isinstance(error, list):
        return " ".join(filter(None, (error_text(part) for part in error[:5])))
    if not isinstance(error, Mapping):
        return "" if error is None else _cut_input(str(error))[:SENTENCE_CHARACTERS]
    names = ("code", "type", "status", "reason", "message", "msg", "detail", "error", "innererror", "metadata")
    pieces = [error_text(error[name]) for name in names if name in error]
    if isinstance(raw := error.get("raw"), str):
        pieces.append(error_text(_parse_json(raw)))
    return " ".join(filter(None, pieces))


def _cut_input(sentence: str) -> str:
    return re.split(r"""["']input["']\s*:""", sentence, maxsplit=1)[0]


def _parse_json(raw: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the provider asks to wait: `retry-after-ms`, `retry-after` in seconds or as a date, which is by
    the clock of the server whose own `date` stands beside it."""
    lowered = {name.lower(): value for name, value in headers.items()}
    for name, divisor in (("retry-after-ms", 1000.0), ("x-ms-retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(lowered[name]) / divisor
        except (KeyError, ValueError):
            continue
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    until = _parse_date(lowered.get("retry-after"))
    if until is None:
        return None
    now = _parse_date(lowered.get("date"))
    return max(0.0, until - (time.time() if now is None else now))


def _parse_date(date: str | None) -> float | None:
    """Seconds since 1970 of an HTTP date; None: there is none, or it is no date."""
    try:
        moment = parsedate_to_datetime(date or "")
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _wait_in_words(detail: str) -> float | None:
    """The seconds of a sentence such as "Please try again in 6m0.5s" or "retry after 26 seconds"."""
    found = re.search(
        r"(?:try again|retry|wait)\w* (?:in|after|for) ((?:\d+(?:\.\d+)?\s?[a-z]+\s?){1,3})", detail, re.I
    )
    pieces = re.findall(r"(\d+(?:\.\d+)?)\s?(ms|millisecond|s|m|h)", found.group(1).lower()) if found else []
    units = {"ms": 0.001, "millisecond": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    return sum(float(count) * units[unit] for count, unit in pieces) if pieces else None
