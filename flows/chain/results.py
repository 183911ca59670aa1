"""What a stage's run returns: small plain values, and who wants to see them while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tasks.foundation.run.cost_plan import planned_in, total_of
from tasks.foundation.run.progress import Progress
from tasks.foundation.store.commits import Commit


@dataclass(frozen=True, slots=True)
class StageResult:
    """One stage of one build (of a stage that fans out, one member) after a run of it.

    `decision` is what there was to do. `calls`, `from_cache` and the tokens are what this run did; `cost_usd`
    is that of all rows of the stage so far, None when a price is unknown. `seconds` is the time it took now.
    `planned_calls` (low and high end of the range; None: nothing was planned) is held against `calls_of_rows` and
    `replayed_of_rows`: the calls made, and the requests answered by the cache, for all rows of the stage so far.
    `unreported` are replies of this run whose tokens the provider did not report: the tokens lack theirs.
    """

    stage: str
    build: str
    decision: str
    revision: int
    partial: bool
    n_in: int
    n_produced: int
    n_filtered: int
    n_failed: int
    calls: int
    from_cache: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    seconds: float
    planned_calls: tuple[float, float] | None = None
    calls_of_rows: int = 0
    replayed_of_rows: int = 0
    unreported: int = 0

    @property
    def tokens(self) -> str:
        """Prompt and completion together, as `show_tokens` has them."""
        return show_tokens(self.prompt_tokens + self.completion_tokens, self.unreported)

    def sentence(self) -> str:
        """One line for a log."""
        return (
            f"{self.stage}: {self.decision}; {self.n_in:,} rows in = {self.n_produced:,} produced + "
            f"{self.n_filtered:,} filtered + {self.n_failed:,} failed; {self.calls:,} calls, {self.seconds:.0f} s"
        )


def result_of(commit: Commit, decision: str, progress: Progress, seconds: float) -> StageResult:
    """The result of a run that ended with this commit."""
    accounting = commit.accounting
    return StageResult(
        stage=commit.run,
        build=commit.build,
        decision=decision,
        revision=commit.revision,
        partial=commit.partial,
        n_in=accounting.n_in,
        n_produced=accounting.n_produced,
        n_filtered=accounting.n_filtered,
        n_failed=accounting.n_failed,
        calls=progress.calls,
        from_cache=progress.cached,
        prompt_tokens=progress.prompt_tokens,
        completion_tokens=progress.completion_tokens,
        cost_usd=commit.usage.get("cost_usd"),
        seconds=round(seconds, 3),
        planned_calls=_read_planned_calls(commit),
        calls_of_rows=commit.usage.get("calls", 0),
        replayed_of_rows=commit.usage.get("from_cache", 0),
        unreported=progress.unreported,
    )


def show_tokens(known: int, unreported: int) -> str:
    """A sum of tokens for people: `≥` where it lacks those of some replies, `unknown` where none were reported."""
    if not unreported:
        return f"{known:,}"
    return f"≥ {known:,}" if known else "unknown"


def _read_planned_calls(commit: Commit) -> tuple[float, float] | None:
    planned = planned_in(commit.record)
    calls = total_of(planned).calls
    return (calls.low, calls.high) if planned else None


class Observer(Protocol):
    """Sees the stages of this process while they run (a terminal, a test). Must be quick."""

    def changed(self, progress: Progress) -> None:
        """Called after every change of a stage's counts."""

    def finished(self, result: StageResult) -> None:
        """Called when a stage has ended well."""


OBSERVERS: list[Observer] = []
"""The observers of this process; flows run by a worker have none."""
