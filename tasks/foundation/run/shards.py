"""Working on the rows of one shard: many items at a time, each ending in rows or in a reject."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasks.foundation.errors import ModelError, TooManyFailures
from tasks.foundation.llm.engine import Engine
from tasks.foundation.run.asking import ItemAsker
from tasks.foundation.run.progress import Progress
from tasks.foundation.stage import Stage, StageContext
from tasks.foundation.tables import Row
from tasks.foundation.tables.operations import Reject

ENOUGH_TO_JUDGE = 10
"""Items after which a stage's failure rate is held against its limit while it runs."""


@dataclass(slots=True)
class Worked:
    """What some items made: rows by table in item order, and how many items produced."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    n_produced: int = 0


@dataclass(frozen=True, slots=True)
class Worker:
    """Works on items of one stage run."""

    stage: Stage
    context: StageContext
    engine: Engine
    progress: Progress
    seed: int
    revision: int
    rows_in_flight: int
    max_failure_rate: float

    async def work(self, keys: Sequence[str]) -> Worked:
        """Rows of all `keys`, in their order. Raises TooManyFailures, ModelUnavailable or StoreError."""
        assert self.stage.briefs is not None
        briefs = await asyncio.to_thread(self.stage.briefs, self.context, keys)
        places = asyncio.Semaphore(self.rows_in_flight)
        try:
            async with asyncio.TaskGroup() as group:
                jobs = [group.create_task(self._item(key, briefs[key], places)) for key in keys]
        except BaseExceptionGroup as several:
            raise first_error(several) from None
        worked = Worked()
        for rows, produced in (job.result() for job in jobs):
            worked.n_produced += produced
            for table, each in rows.items():
                worked.rows[table].extend(each)
        return worked

    async def _item(self, key: str, brief: Any, places: asyncio.Semaphore) -> tuple[Mapping[str, list[Row]], bool]:
        assert self.stage.work is not None
        async with places:
            asker = ItemAsker(self.engine, self.stage.name, key, self.seed, self.revision)
            rows: dict[str, list[Row]] = {}
            produced = True
            try:
                made = await self.stage.work(self.context, brief, asker)
                rows = {table: list(each) for table, each in made.items()}
            except ModelError as error:
                produced = False
                rows["rejects"] = [_reject(self.stage.name, key, error, asker)]
                self.progress.last_failure = f"{error.kind}, {error}"
            self._count(produced)
            return {**rows, **asker.rows()}, produced

    def _count(self, produced: bool) -> None:
        progress = self.progress
        progress.rows_done += 1
        progress.rows_failed += not produced
        progress.changed()
        if not produced and progress.rows_done >= ENOUGH_TO_JUDGE:
            check_failure_rate(
                self.stage.name, progress.rows_failed, progress.rows_done, self.max_failure_rate, progress.last_failure
            )


def check_failure_rate(stage: str, failed: int, done: int, limit: float, reason: str) -> None:
    """TooManyFailures, with the reason of one of them, when the share of failed items is above the stage's limit."""
    if done and failed / done > limit:
        last = f" The last failure: {reason.rstrip('.')}." if reason else ""
        raise TooManyFailures(
            f"stage {stage} stopped: {failed} of {done} rows failed, more than {stage}.max_failure_rate = {limit:g} "
            f"allows.{last} What was answered is kept: mend the cause (`colloquy doctor` shows the state of the "
            "models) and run the same command, it goes on."
        )


def _reject(stage: str, key: str, error: ModelError, asker: ItemAsker) -> Reject:
    return Reject(
        stage=stage,
        row_key=key,
        kind=error.kind,
        reason=str(error),
        retryable=error.may_pass_later,
        attempts=max(asker.attempts, error.attempts),
        payload=None,
    )


def first_error(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception that stopped the shard, out of its group."""
    error = several.exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error
