"""What the vendors' SDKs have in common: their HTTP client, and what its exceptions and redirects mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
import httpx2
import openai

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.failures import Border, ProviderFailure, unexpected_failure
from tasks.foundation.llm.models import ModelSpec, api_key
from tasks.foundation.llm.providers.bodies import parse_object
from tasks.foundation.llm.redaction import brief
from tasks.foundation.llm.request import RawReply


def http_client() -> httpx2.AsyncClient:
    """OpenAI's client over aiohttp, which holds up at many calls in flight. It follows no redirect: whoever answers
    must not be able to send keys and prompts elsewhere."""
    return openai.DefaultAioHttpClient(follow_redirects=False)


class HttpProvider(ABC):
    """One endpoint with one key, asked through a vendor's SDK. ModelUnavailable when the key is not set."""

    def __init__(self, spec: ModelSpec) -> None:
        self._key = api_key(spec)
        self._url = str(spec.endpoint)

    def asking(self, seconds: float) -> Border:
        """For a question that may take so long: the SDK's exceptions become ProviderFailure or ModelUnavailable."""
        return Border(lambda error: self.status_failure(error) or self._connection_failure(error, seconds), seconds)

    def read(self, body: str | bytes) -> RawReply:
        """What a body says, be it a reply or an error, which is raised. Latency and seed are not in it."""
        return self.read_body(parse_object(body, [self._key]))

    @abstractmethod
    def read_body(self, body: Mapping[str, Any]) -> RawReply:
        """The same for a body that is parsed already."""

    @abstractmethod
    def status_failure(self, error: Exception) -> ProviderFailure | ModelUnavailable | None:
        """What an exception of the SDK means that stands for a status; None for any other exception."""

    def redirect_failure(self, response: httpx2.Response) -> ProviderFailure:
        """The failure for an answer that names another address."""
        target = urlsplit(urljoin(self._url, response.headers.get("location", "")))
        there = brief(f"{target.scheme}://{target.netloc.rpartition('@')[2]}{target.path}", [self._key])
        return ProviderFailure(
            "connection",
            f"{self._url} redirects to {there} (HTTP {response.status_code}), which is not followed: keys and prompts "
            "go to no address that the settings do not name. If the API is there, set it as base_url",
        )

    def _connection_failure(self, error: BaseException, seconds: float) -> ProviderFailure:
        """`timeout` after `seconds`, `connection` where no HTTP came about, `server` for whatever nobody foresaw."""
        if isinstance(error, openai.APIConnectionError):  # which is what that SDK makes of its client's exceptions
            error = error.__cause__ or error
        match error:
            case TimeoutError() | httpx2.TimeoutException() if not isinstance(error, httpx2.ConnectTimeout):
                return ProviderFailure("timeout", f"{self._url} sent no reply within {seconds:g} s")
            case httpx2.HTTPError() | aiohttp.ClientError() | OSError():  # aiohttp's broken ones come as ConnectTimeout
                why = brief(str(error) or type(error).__name__, [self._key])
                return ProviderFailure("connection", f"no connection to {self._url}: {why}")
        return unexpected_failure(error, [self._key])
