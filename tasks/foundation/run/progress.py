"""How far a stage is: counts that a screen or a dashboard may look at while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tasks.foundation.llm.batch.transport import BatchProgress


@dataclass(slots=True)
class Progress:
    """Counts of one stage run in this process. `rows_total` None: not known yet; `last_failure` is the reason
    of the latest row that failed, empty when none did; `waiting` says why no call goes out at the moment, if so.

    `watchers` are called after every change, with this object; they must be quick.
    """

    stage: str
    phase: str = "opening"
    rows_total: int | None = None
    rows_done: int = 0
    rows_under_way: int = 0
    rows_failed: int = 0
    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unreported: int = 0
    """Replies whose tokens the provider did not report: the two sums lack them."""
    last_failure: str = ""
    batches: BatchProgress | None = None
    """Of a stage in batch mode, once it asks."""
    waiting: str = ""
    watchers: list[Callable[[Progress], None]] = field(default_factory=list)

    def counts(self) -> str:
        """`8 of 40 rows, 1 failed, 16 calls, 3 from cache`, and what is in batches."""
        total = "?" if self.rows_total is None else self.rows_total
        rows = f"{self.rows_done} of {total} rows, {self.rows_failed} failed"
        batches = f"; {self.batches.sentence()}" if self.batches else ""
        return f"{rows}, {self.calls} calls, {self.cached} from cache{batches}"

    def changed(self) -> None:
        for watcher in self.watchers:
            watcher(self)
