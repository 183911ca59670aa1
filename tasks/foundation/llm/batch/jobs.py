"""What is known of a job and of each request in it, and how that stands in the rows of the store."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from tasks.foundation.errors import ModelError, ModelUnavailable
from tasks.foundation.llm.batch.api import Refusal
from tasks.foundation.llm.failures import ProviderFailure
from tasks.foundation.llm.request import ModelSpec, RawReply, Usage

Endpoint = tuple[str, str | None, str | None, str | None]
"""Provider, base URL, name of the key's environment variable, API version: who can be asked about a job."""

JOB_COLUMNS = (
    "tag, provider, base_url, api_key_env, api_version, model, requests, state, created_at, job_id, outcome,"
    " error_kind, error"
)

_KEPT = ("text", "finish_reason", "model_reported", "latency_seconds")
"""Of a reply, beside its usage; the seed sent is the call's."""


@dataclass(frozen=True, slots=True)
class Job:
    """One row of `jobs`. `failure`: what the requests that it did not answer are told; None: they are sent anew."""

    tag: str
    provider: str
    base_url: str | None
    api_key_env: str | None
    api_version: str | None
    model: str
    requests: int = 0
    state: Literal["intended", "submitted", "ended"] = "intended"
    created_at: str | None = None
    job_id: str | None = None
    outcome: str | None = None
    failure: Refusal | None = None

    @property
    def endpoint(self) -> Endpoint:
        return self.provider, self.base_url, self.api_key_env, self.api_version

    @property
    def name(self) -> str:
        """What messages call it: the provider's id, or our tag before there is one."""
        return self.job_id or self.tag

    def spec(self) -> ModelSpec:
        """Enough of the model to ask its endpoint about the job."""
        return ModelSpec(
            alias=self.model,
            provider=self.provider,  # type: ignore[arg-type]
            name=self.model,
            family="",
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            api_version=self.api_version,
        )


@dataclass(frozen=True, slots=True)
class Item:
    """Where one request is: in the job `tag`, waiting, answered or failed."""

    tag: str
    outcome: RawReply | Refusal | None

    @property
    def waits(self) -> bool:
        return self.outcome is None

    @property
    def failed(self) -> bool:
        return not self.waits and not isinstance(self.outcome, RawReply)


def job_of(row: tuple[Any, ...]) -> Job:
    """The job of a row of `JOB_COLUMNS`."""
    *fields, kind, text = row
    return replace(Job(*fields), failure=refusal_of(kind, text))


def stored(outcome: RawReply | Refusal) -> tuple[str, str | None, str | None, str | None]:
    """State, reply, error kind and error of an item."""
    if isinstance(outcome, RawReply):
        kept = {name: getattr(outcome, name) for name in _KEPT} | {"usage": asdict(outcome.usage)}
        return "answered", json.dumps(kept), None, None
    return "failed", None, *words_of(outcome)


def outcome_of(state: str, reply: str | None, kind: Any, text: Any) -> RawReply | Refusal | None:
    """`stored` read back; None: the request waits."""
    if state == "answered":
        fields = json.loads(reply or "{}")
        return RawReply(**(fields | {"usage": Usage(**fields["usage"])}))
    return refusal_of(kind, text) if state == "failed" else None


def words_of(refusal: Refusal | None) -> tuple[str | None, str | None]:
    """Kind and text; ModelUnavailable has no kind."""
    if refusal is None:
        return None, None
    return (refusal.kind if isinstance(refusal, ModelError) else None), str(refusal)


def refusal_of(kind: Any, text: Any) -> Refusal | None:
    """`words_of` read back."""
    if text is None:
        return None
    return ModelUnavailable(text) if kind is None else ProviderFailure(kind, text)
