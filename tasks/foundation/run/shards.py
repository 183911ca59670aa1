"""Working on the rows of one shard: many items at a time, each ending in rows or in a reject."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasks.foundation.errors import BudgetReached, ModelError, TooManyFailures
from tasks.foundation.llm.engine import Engine
from tasks.foundation.run.asking import ItemAsker
from tasks.foundation.run.progress import Progress
from tasks.foundation.stage import Rows, Stage, StageContext
from tasks.foundation.tables import Row
from tasks.foundation.tables.operations import Reject

ENOUGH_TO_JUDGE = 10
"""Items after which a stage's failure rate is held against its limit while it runs."""


@dataclass(slots=True)
class WorkedRows:
    """What some items made: rows by table in item order, and how many items produced."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    n_produced: int = 0


@dataclass(frozen=True, slots=True)
class ItemEnd:
    """One item's end. `failure` is None where it produced."""

    rows: Mapping[str, Sequence[Row]]
    asker: ItemAsker
    failure: ModelError | None


@dataclass(frozen=True, slots=True)
class Worker:
    """Works on items of one stage run: `rows_in_flight` at a time, the others wait as keys."""

    stage: Stage
    context: StageContext
    engine: Engine
    progress: Progress
    seed: int
    rows_in_flight: int
    max_failure_rate: float
    salvage_rounds: int = 0

    async def work(self, keys: Sequence[str]) -> WorkedRows:
        """Rows of all `keys`, in their order.

        Items that failed in passing are tried again when all others are done, so many rounds as the settings say.
        Raises TooManyFailures, BudgetReached, ModelUnavailable or StoreError.
        """
        assert self.stage.load_items is not None
        loaded = await asyncio.to_thread(self.stage.load_items, self.context, keys)
        ended: dict[str, ItemEnd] = {}
        await self._all(keys, loaded, ended)
        for _ in range(self.salvage_rounds):
            again = [key for key in keys if _may_pass(ended[key])]
            if not again:
                break
            self._uncount(len(again))
            await self._all(again, loaded, ended)
        return self._gathered(keys, ended)

    async def _all(self, keys: Sequence[str], loaded: Mapping[str, Any], ended: dict[str, ItemEnd]) -> None:
        """Every key once; an earlier end of a key is replaced, and what it had cost is kept in its asker."""
        waiting = iter(keys)

        async def one_after_another() -> None:
            for key in waiting:
                ended[key] = await self._item(key, loaded[key], ended.get(key))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.rows_in_flight, len(keys))):
                    group.create_task(one_after_another())
        except BaseExceptionGroup as several:
            raise first_error(several) from None
        if self.engine.budget.reached is not None:
            await self.engine.settled()
            raise BudgetReached(f"stage {self.stage.name} stopped: {self.engine.budget.reached}")

    async def _item(self, key: str, item: Any, earlier: ItemEnd | None) -> ItemEnd:
        before = earlier.asker if earlier else None
        asker = ItemAsker(self.engine, self.stage.name, key, self.context.settings, before)
        self.progress.rows_under_way += 1
        try:
            made = await self._worked(item, asker)
        except ModelError as error:
            if error.kind != "budget":
                self.progress.last_failure = f"{error.kind}, {error}"
                self._count(False)
            return ItemEnd({}, asker, error)
        self._count(True)
        return ItemEnd(made, asker, None)

    async def _worked(self, item: Any, asker: ItemAsker) -> Rows:
        assert self.stage.work is not None
        try:
            return await self.stage.work(self.context, item, asker)
        finally:
            self.progress.rows_under_way -= 1

    def _gathered(self, keys: Sequence[str], ended: dict[str, ItemEnd]) -> WorkedRows:
        """The rows in the order of the keys; each end is let go as soon as it is written down."""
        worked = WorkedRows()
        for key in keys:
            end = ended.pop(key)
            worked.n_produced += end.failure is None
            if end.failure is not None:
                worked.rows["rejects"].append(_reject(self.stage.name, key, end.failure, end.asker))
            for rows in (end.rows, end.asker.rows()):
                for table, each in rows.items():
                    worked.rows[table].extend(each)
        return worked

    def _uncount(self, again: int) -> None:
        self.progress.rows_done -= again
        self.progress.rows_failed -= again
        self.progress.changed()

    def _count(self, produced: bool) -> None:
        progress = self.progress
        progress.rows_done += 1
        progress.rows_failed += not produced
        progress.changed()
        if not produced and progress.rows_done >= ENOUGH_TO_JUDGE:
            # Failures are often quicker than answers: those under way may all still be answered.
            begun = progress.rows_done + progress.rows_under_way
            check_failure_rate(
                self.stage.name, progress.rows_failed, begun, self.max_failure_rate, progress.last_failure
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


def _may_pass(end: ItemEnd) -> bool:
    return end.failure is not None and end.failure.may_pass_later


def first_error(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception that stopped the shard, out of its group."""
    error = several.exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error
