"""The physical calls of one logical request: the first, what is asked after a reply that could not be used, and what
they come to in the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from tasks.foundation.errors import FailureKind
from tasks.foundation.ids import canonical_json, content_id, seed_of
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.prompts import defuse
from tasks.foundation.llm.redaction import encodable
from tasks.foundation.llm.reply import BadReply, said_in, schema_of
from tasks.foundation.llm.request import Message, ProviderCall, RawReply, Request, Usage
from tasks.foundation.tables.operations import LlmCall, Reply

QUOTED_CHARACTERS = 8000
"""As much of a bad reply as is shown to the model when it is asked again."""

SEED_BITS = 31

SCHEMA_INSTRUCTION = (
    "Answer with one JSON object and nothing else. It must be valid against this JSON schema:\n{schema}"
)
REASK_INSTRUCTION = "{sentence}\nAnswer again with the complete corrected JSON object and nothing else."
REASK_TEXT_INSTRUCTION = "{sentence}\nAnswer again."

_PLAIN = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Link:
    """One physical reply of a chain. `paid` tells whether this logical request paid in this run."""

    reply: RawReply
    paid: bool
    attempts: int
    created_at: datetime


@dataclass(slots=True)
class Chain:
    """One logical request on its way: the call to make now, and the replies to those before it."""

    request: Request
    call: ProviderCall
    request_id: str = field(init=False)
    key: str = field(init=False)
    links: list[Link] = field(default_factory=list)
    failed_attempts: int = 0
    lengthened: bool = False
    cut: list[str] = field(default_factory=list)
    """Fields of the reply whose texts were far longer than their limit."""

    def __post_init__(self) -> None:
        self.key = self.call.key()
        asked = self.request
        self.request_id = content_id("call", asked.stage, asked.row_key, asked.purpose, self.key)

    @property
    def attempts(self) -> int:
        """Calls that reached the provider, failed ones included."""
        return sum(link.attempts for link in self.links) + self.failed_attempts

    @property
    def last_text(self) -> str | None:
        """The last reply as it came; None where none came."""
        return self.links[-1].reply.text if self.links else None

    def go_on(self, trouble: BadReply) -> bool:
        """Makes the re-ask after the last reply the call to make; False where there is none worth making."""
        following = next_call(self.call, self.links[-1].reply, trouble, self.lengthened)
        if following is None:
            return False
        self.lengthened = self.lengthened or trouble.kind == "truncated"
        self.call, self.key = following, following.key()
        return True

    def ledger_row(
        self,
        error_kind: FailureKind | None,
        revision: int,
        price: Callable[[Usage], float | None],
        now: datetime,
    ) -> LlmCall:
        """The row of `llm_calls`. Its numbers are those of the calls that this run paid for; where it paid for none
        and the request was answered, those of the earlier payment (`from_cache`)."""
        asked, spec = self.request, self.call.model
        last = self.links[-1].reply if self.links else None
        from_cache = bool(self.links) and not self.failed_attempts and not any(link.paid for link in self.links)
        booked = [link.reply for link in self.links if link.paid or from_cache]
        usage = sum((reply.usage for reply in booked), Usage())
        return LlmCall(
            request_id=self.request_id,
            stage=asked.stage,
            row_key=asked.row_key,
            purpose=asked.purpose,
            revision=revision,
            alias=asked.alias,
            model=spec.name,
            family=spec.family,
            provider=spec.provider,
            base_url=spec.base_url,
            prompt_fingerprint=asked.prompt_fingerprint,
            temperature=asked.temperature,
            seed_sent=last.seed_sent if last else self.call.seed,
            model_reported=last.model_reported if last else None,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            completion_tokens=usage.completion_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            cost_usd=_sum_or_none([price(reply.usage) for reply in booked]),
            latency_seconds=sum(reply.latency_seconds for reply in booked),
            attempts=self.attempts,
            from_cache=from_cache,
            cut_texts=len(self.cut),
            finish_reason=last.finish_reason if last else None,
            error_kind=error_kind,
            created_at=self.links[-1].created_at if self.links else now,
        )

    def reply_row(self) -> Reply:
        """The row of `replies`: the messages as sent, and the last reply's text."""
        messages = [{"role": part.role, "content": part.content} for part in self.call.messages]
        return Reply(request_id=self.request_id, prompt=_PLAIN.encode(messages), reply=self.last_text)


def _sum_or_none(costs: list[float | None]) -> float | None:
    """None where any is unknown, or there is none."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def first_call(spec: ModelSpec, request: Request, fresh_salt: int | None) -> ProviderCall:
    """The physical call that a request starts with; the reply's schema goes to the API or the prompt."""
    schema = schema_of(request.reply) if request.reply is not None else None
    messages = tuple(Message(part.role, encodable(part.content)) for part in request.messages)
    if schema is not None and spec.structured != "json_schema":
        messages = _with_appended(messages, SCHEMA_INSTRUCTION.format(schema=canonical_json(schema)))
    sample, seed = request.sample, request.seed
    if fresh_salt is not None:
        sample = seed_of("fresh", fresh_salt, sample)
        seed = None if seed is None else seed_of("fresh", fresh_salt, seed)
    return ProviderCall(
        model=spec,
        messages=messages,
        schema=schema,
        schema_name=request.reply.__name__ if request.reply is not None else "",
        temperature=request.temperature,
        max_tokens=request.max_tokens,
        seed=seed % 2**SEED_BITS if seed is not None and spec.supports_seed else None,
        sample=sample,
    )


def next_call(call: ProviderCall, reply: RawReply, trouble: BadReply, lengthened: bool) -> ProviderCall | None:
    """The re-ask after a bad reply, or None when a longer budget has been tried (`lengthened`) and did not help.

    Cut off: the same messages with twice the tokens, once. Otherwise the reply and what was wrong with
    it are shown; an empty reply cannot be shown (some chat templates refuse it), only complained of.
    """
    if trouble.kind == "truncated":
        return None if lengthened else replace(call, max_tokens=call.max_tokens * 2)
    instruction = REASK_TEXT_INSTRUCTION if call.schema is None else REASK_INSTRUCTION
    complaint = defuse(instruction.format(sentence=trouble.sentence), frozenset())
    shown = defuse(said_in(reply.text)[:QUOTED_CHARACTERS], frozenset())
    if not shown:
        return replace(call, messages=_with_appended(call.messages, complaint))
    return replace(call, messages=(*call.messages, Message("assistant", shown), Message("user", complaint)))


def _with_appended(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """`text` at the end of the last user message (as a message of its own where the last is another's)."""
    if messages and messages[-1].role == "user":
        return (*messages[:-1], Message("user", f"{messages[-1].content}\n\n{text}"))
    return (*messages, Message("user", text))
