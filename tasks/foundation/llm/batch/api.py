"""What every batch API can do, whoever the vendor is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tasks.foundation.errors import ConfigError, ModelUnavailable
from tasks.foundation.llm.failures import ProviderFailure
from tasks.foundation.llm.request import ModelSpec, ProviderCall, RawReply

Refusal = ProviderFailure | ModelUnavailable
"""Why one request, or a whole job, was not answered."""

ASK_SECONDS = 60.0
TRANSFER_SECONDS = 3600.0
"""Time limits: of a small question about a job, and of sending or fetching its file."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """How a job stands at its provider.

    `done`: requests worked on so far; None: not reported. `files` hold the replies and failures of a job
    that ended. `seconds`: from its creation to its end, by the provider's clock; None while it runs.
    `failure`: why a failed job was refused as a whole.
    """

    state: Literal["running", "completed", "expired", "cancelled", "failed"]
    done: int | None = None
    files: tuple[str, ...] = ()
    seconds: float | None = None
    failure: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One line of a job's output. `outcome` None: the request was never worked on (the job expired)."""

    key: str
    outcome: RawReply | Refusal | None


class BatchApi(Protocol):
    """One endpoint with one key. All but `line` and `read` raise ProviderFailure or ModelUnavailable.

    A job carries our `tag`, by which `find` sees it again after a crash between creating and noting it.
    """

    max_requests: int
    max_bytes: int

    def line(self, key: str, call: ProviderCall) -> bytes:
        """The call as one line of a job's file; its reply comes back with `key`."""
        ...

    async def upload(self, path: Path, tag: str) -> str:
        """The id of the uploaded file."""
        ...

    async def create(self, file: str, tag: str, model: str) -> str:
        """The id of the new job over an uploaded file."""
        ...

    async def find(self, tag: str) -> str | None:
        """The id of the job with this tag; None: there is none."""
        ...

    async def status(self, job_id: str) -> JobStatus:
        """Raises Gone, too."""
        ...

    async def download(self, file: str, path: Path) -> None:
        """Writes a job's output to `path`, never holding it in memory. Raises Gone, too."""
        ...

    def read(self, line: bytes) -> Result:
        """One line of output; ValueError, KeyError or TypeError when it is none."""
        ...

    async def cancel(self, job_id: str) -> None: ...

    async def close(self) -> None: ...


def api_for(spec: ModelSpec) -> BatchApi:
    """A new client of the model's batch API. ModelUnavailable when the key is not set."""
    match spec.provider:
        case "openai":
            from tasks.foundation.llm.batch.openai_batches import OpenAIBatches

            return OpenAIBatches(spec)
        case "google":
            from tasks.foundation.llm.batch.gemini_batches import GeminiBatches

            return GeminiBatches(spec)
        case _:
            raise ConfigError(_without_batches(spec.provider, [spec.alias]))


def named(name: object, what: str) -> str:
    """`name` as a provider gave it to a job or file; ProviderFailure where it gave none."""
    if not isinstance(name, str) or not name:
        raise ProviderFailure("server", f"the provider named no {what}")
    return name


def check_batch(stage: str, aliases: Sequence[str], models: Mapping[str, ModelSpec]) -> None:
    """ConfigError naming the models of a stage with `mode: batch` that have no batch API."""
    if lacking := [alias for alias in dict.fromkeys(aliases) if not models[alias].batch]:
        raise ConfigError(_without_batches(f"stage {stage}", lacking))


def _without_batches(where: str, aliases: Sequence[str]) -> str:
    return (
        f"mode: batch of {where}: expected models with a batch API, found {', '.join(map(repr, aliases))} without"
        " one. Set mode: live, choose other models, or say `batch: true` in their entry of configs/models.yaml"
        " where the endpoint has OpenAI's or Gemini's batch API."
    )
