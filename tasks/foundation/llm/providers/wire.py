"""The HTTP client of all vendors' SDKs, and what its exceptions and redirects mean."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urljoin, urlsplit

import aiohttp
import httpx2
import openai

from tasks.foundation.llm.failures import ProviderFailure, unexpected_failure
from tasks.foundation.llm.redaction import brief


def http_client() -> httpx2.AsyncClient:
    """OpenAI's client over aiohttp, which holds up at many calls in flight. It follows no redirect: whoever answers
    must not be able to send keys and prompts elsewhere."""
    return openai.DefaultAioHttpClient(follow_redirects=False)


def connection_failure(
    error: BaseException, url: str, seconds: float, secrets: Iterable[str | None] = ()
) -> ProviderFailure:
    """`timeout` after `seconds`, `connection` where no HTTP came about, `server` for whatever nobody foresaw."""
    match error:
        case httpx2.ConnectTimeout():  # aiohttp's broken connections come as one
            return ProviderFailure("connection", f"no connection to {url}: {_describe(error, secrets)}")
        case TimeoutError() | httpx2.TimeoutException():
            return ProviderFailure("timeout", f"{url} sent no reply within {seconds:g} s")
        case httpx2.HTTPError() | aiohttp.ClientError() | OSError():
            return ProviderFailure("connection", f"no connection to {url}: {_describe(error, secrets)}")
    return unexpected_failure(error, secrets)


def redirect_failure(asked: str, response: httpx2.Response, secrets: Iterable[str | None] = ()) -> ProviderFailure:
    """The failure for an answer that names another address."""
    target = urlsplit(urljoin(asked, response.headers.get("location", "")))
    there = brief(f"{target.scheme}://{target.netloc.rpartition('@')[2]}{target.path}", secrets)
    return ProviderFailure(
        "connection",
        f"{asked} redirects to {there} (HTTP {response.status_code}), which is not followed: keys and prompts go to no "
        "address that the settings do not name. If the API is there, set it as base_url",
    )


def _describe(error: BaseException, secrets: Iterable[str | None]) -> str:
    return brief(str(error) or type(error).__name__, secrets)
