"""One item's way to the models: its requests go to the engine, its ledger rows stay with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.reply import said_in
from tasks.foundation.llm.request import Outcome, Request
from tasks.foundation.settings import Settings
from tasks.foundation.stage import Asker
from tasks.foundation.tables import Row


class ItemAsker(Asker):
    """Asks for one item. `rows()` gives its llm_calls and replies, also after a failure.

    `earlier` is the asker of a try of the same item that failed: what only it asked stays in the ledger, and
    its calls that failed count with those that asked the same again.
    """

    def __init__(
        self, engine: Engine, stage: str, row_key: str, settings: Settings, earlier: ItemAsker | None = None
    ) -> None:
        super().__init__(stage, row_key, settings)
        self._engine = engine
        self._outcomes: list[Outcome] = []
        self._earlier = earlier.outcomes() if earlier is not None else []

    async def send(self, request: Request) -> Any:
        outcome = await self._engine.ask(request)
        self._outcomes.append(outcome)
        if request.reply is None and (words := words_of(outcome)) is not None:
            return words
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    def rows(self) -> Mapping[str, list[Row]]:
        """Ledger rows in the order the requests ended, sorted so that a replay writes the same."""
        ended = sorted(self.outcomes(), key=lambda outcome: (outcome.record.purpose, outcome.record.request_id))
        return {
            "llm_calls": [outcome.record for outcome in ended],
            "replies": [outcome.trace for outcome in ended],
        }

    def outcomes(self) -> list[Outcome]:
        """Every request once, with the attempts of all tries."""
        return merge_tries(self._earlier, self._outcomes)

    @property
    def last_reply(self) -> str:
        return (self._outcomes[-1].trace.reply or "") if self._outcomes else ""

    @property
    def attempts(self) -> int:
        """Provider calls of all its requests."""
        return sum(outcome.record.attempts for outcome in self.outcomes())


def merge_tries(earlier: Sequence[Outcome], later: Sequence[Outcome]) -> list[Outcome]:
    """`later`, with the attempts of requests that had failed in `earlier`, and the requests that were not repeated.

    A request that was answered the first time is answered from the cache the second time and booked the same.
    """
    failed = Counter[str]()
    for outcome in earlier:
        if outcome.error is not None:
            failed[outcome.record.request_id] += outcome.record.attempts
    repeated = {outcome.record.request_id for outcome in later}
    kept = [outcome for outcome in earlier if outcome.record.request_id not in repeated]
    return kept + [_with_attempts(outcome, failed.pop(outcome.record.request_id, 0)) for outcome in later]


def _with_attempts(outcome: Outcome, more: int) -> Outcome:
    record = outcome.record
    return replace(outcome, record=record.model_copy(update={"attempts": record.attempts + more})) if more else outcome


def words_of(outcome: Outcome) -> str | None:
    """The text of a reply that a reader would get to see although the engine calls it a failure: a refusal that
    the vendor reports as one, or a text that stays cut off. None for any other outcome, and without words."""
    cut_off = outcome.error is not None and outcome.error.kind == "truncated"
    if outcome.record.finish_reason != "refusal" and not cut_off:
        return None
    return said_in(outcome.trace.reply or "") or None
