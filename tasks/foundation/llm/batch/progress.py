"""How far the batch jobs of this process are: counts that a progress line may show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class BatchProgress:
    """`gathering`: requests not yet in a job; `in_jobs`: requests whose job this process waits for;
    `done_in_jobs`: of the requests in open jobs, those the provider says it has worked on; `completed`:
    requests answered or failed so far. `watchers` are called after every change; they must be quick.
    """

    jobs_open: int = 0
    gathering: int = 0
    in_jobs: int = 0
    done_in_jobs: int = 0
    completed: int = 0
    watchers: list[Callable[[BatchProgress], None]] = field(default_factory=list)

    def changed(self) -> None:
        for watcher in self.watchers:
            watcher(self)

    def sentence(self) -> str:
        """`2 batch jobs open (3,400 of 10,000 requests done), 120 gathering, 5,000 completed`."""
        jobs = f"{self.jobs_open:,} batch job{'' if self.jobs_open == 1 else 's'} open"
        return (
            f"{jobs} ({self.done_in_jobs:,} of {self.in_jobs:,} requests done),"
            f" {self.gathering:,} gathering, {self.completed:,} completed"
        )
