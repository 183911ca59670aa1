"""One item's way to the models: its requests go to the engine, its ledger rows stay with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from tasks.foundation.ids import seed_of
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.prompts import Prompt
from tasks.foundation.llm.reply import said_in
from tasks.foundation.llm.request import CallRecord, Message, Outcome, Request, Trace
from tasks.foundation.tables import Row
from tasks.foundation.tables.operations import LlmCall, Reply


class ItemAsker:
    """Asks for one item. `rows()` gives its llm_calls and replies, also after a failure.

    `earlier` is the asker of a try of the same item that failed: what only it asked stays in the ledger, and
    its calls that failed count with those that asked the same again.
    """

    def __init__(
        self, engine: Engine, stage: str, row_key: str, seed: int, revision: int, earlier: ItemAsker | None = None
    ) -> None:
        self._engine = engine
        self._stage = stage
        self._row_key = row_key
        self._seed = seed
        self._revision = revision
        self._outcomes: list[Outcome] = []
        self._earlier = earlier.outcomes() if earlier is not None else []

    async def __call__(
        self,
        prompt: Prompt[Any, Any],
        inputs: BaseModel,
        *,
        language: str,
        alias: str,
        purpose: str,
        temperature: float,
        max_tokens: int,
        reply: type[BaseModel] | None = None,
        sample: int = 0,
        history: Sequence[Message] = (),
    ) -> Any:
        """The validated reply; raises ModelError when the request failed for good."""
        request = Request(
            stage=self._stage,
            row_key=self._row_key,
            purpose=purpose,
            alias=alias,
            messages=messages_of(prompt, inputs, language, history),
            reply=reply or prompt.reply,
            sample=sample,
            temperature=temperature,
            max_tokens=max_tokens,
            seed=seed_of(self._seed, sample),
            prompt_fingerprint=prompt.fingerprint,
        )
        outcome = await self._engine.ask(request)
        self._outcomes.append(outcome)
        if request.reply is None and (words := words_of(outcome)) is not None:
            return words
        if outcome.error is not None:
            raise outcome.error
        assert outcome.answer is not None
        return outcome.answer.value

    def rows(self) -> Mapping[str, list[Row]]:
        """Ledger rows in the order the requests ended, sorted so that a replay writes the same."""
        ended = sorted(self.outcomes(), key=lambda outcome: (outcome.record.purpose, outcome.record.request_id))
        return {
            "llm_calls": [ledger_row(outcome.record, self._revision) for outcome in ended],
            "replies": [reply_row(outcome.trace) for outcome in ended],
        }

    def outcomes(self) -> list[Outcome]:
        """Every request once, with the attempts of all tries."""
        return merged(self._earlier, self._outcomes)

    @property
    def last_reply(self) -> str:
        return (self._outcomes[-1].trace.reply or "") if self._outcomes else ""

    @property
    def attempts(self) -> int:
        """Provider calls of all its requests."""
        return sum(outcome.record.attempts for outcome in self.outcomes())


def messages_of(
    prompt: Prompt[Any, Any], inputs: BaseModel, language: str, history: Sequence[Message] = ()
) -> tuple[Message, ...]:
    """The messages of a request: the earlier ones of a chat stand between the prompt's system message and its last."""
    *opening, last = prompt.render(language, inputs)
    return (*opening, *(prompt.defused(language, said) for said in history), last)


def merged(earlier: Sequence[Outcome], later: Sequence[Outcome]) -> list[Outcome]:
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
    if not more:
        return outcome
    return replace(outcome, record=replace(outcome.record, attempts=outcome.record.attempts + more))


def words_of(outcome: Outcome) -> str | None:
    """The text of a reply that a reader would get to see although the engine calls it a failure: a refusal that
    the vendor reports as one, or a text that stays cut off. None for any other outcome, and without words."""
    cut_off = outcome.error is not None and outcome.error.kind == "truncated"
    if outcome.record.finish_reason != "refusal" and not cut_off:
        return None
    return said_in(outcome.trace.reply or "") or None


def ledger_row(record: CallRecord, revision: int) -> LlmCall:
    usage = record.usage
    return LlmCall(
        request_id=record.request_id,
        stage=record.stage,
        row_key=record.row_key,
        purpose=record.purpose,
        revision=revision,
        alias=record.alias,
        model=record.model,
        family=record.family,
        provider=record.provider,
        base_url=record.base_url,
        prompt_fingerprint=record.prompt_fingerprint,
        temperature=record.temperature,
        seed_sent=record.seed_sent,
        model_reported=record.model_reported,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        completion_tokens=usage.completion_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost_usd=record.cost_usd,
        latency_seconds=record.latency_seconds,
        attempts=record.attempts,
        from_cache=record.from_cache,
        finish_reason=record.finish_reason,
        error_kind=record.error_kind,
        created_at=record.created_at,
    )


def reply_row(trace: Trace) -> Reply:
    return Reply(request_id=trace.request_id, prompt=trace.prompt, reply=trace.reply)
