"""`mode: batch`: the engine's calls travel in a provider's batch jobs instead of one by one.

`BatchTransport` is a `Provider` like any other, so cache, re-asks, ledger and budgets know nothing of it. It collects
calls, writes them into jobs, and answers each when its job has ended. What a job holds is in SQLite before the provider
hears of it, so no kill makes a request be paid for twice. Here stands what every batch API can do, whoever the vendor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.failures import ProviderFailure
from tasks.foundation.llm.request import ProviderCall, RawReply

Refusal = ProviderFailure | ModelUnavailable
"""Why one request, or a whole job, was not answered."""

ASK_SECONDS = 60.0
TRANSFER_SECONDS = 3600.0
"""Time limits: of a small question about a job, and of sending or fetching its file."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """How a job stands at its provider."""

    state: Literal["running", "completed", "expired", "cancelled", "failed"]
    done: int | None = None
    """Requests worked on so far; None: not reported."""
    files: tuple[str, ...] = ()
    """The replies and failures of a job that ended."""
    seconds: float | None = None
    """From its creation to its end, by the provider's clock; None while it runs, and where it is not reported."""
    failure: Refusal | None = None
    """Why a failed job was refused as a whole."""


@dataclass(frozen=True, slots=True)
class Result:
    """One line of a job's output. `outcome` None: the request was never worked on (the job expired)."""

    key: str
    outcome: RawReply | Refusal | None

    @staticmethod
    def read(key: str, reply: Callable[[], RawReply]) -> Result:
        """The line whose body says `reply`, or why there is none."""
        try:
            return Result(key, reply())
        except (ProviderFailure, ModelUnavailable) as refusal:
            return Result(key, refusal)


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

    async def close(self) -> None: ...


def check_name(name: object, what: str) -> str:
    """`name` as a provider gave it to a job or file; ProviderFailure where it gave none."""
    if not isinstance(name, str) or not name:
        raise ProviderFailure("server", f"the provider named no {what}")
    return name
