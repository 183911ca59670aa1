"""The physical calls of one logical request: the first, and what is asked after a reply that could not be used."""

from __future__ import annotations

from dataclasses import replace

from tasks.foundation.ids import canonical_json, seed_of
from tasks.foundation.llm.defuse import defused
from tasks.foundation.llm.reply import BadReply, encodable, said_in, schema_of
from tasks.foundation.llm.request import Message, ModelSpec, ProviderCall, RawReply, Request

QUOTED_CHARACTERS = 8000
"""As much of a bad reply as is shown to the model when it is asked again."""

SEED_BITS = 31

SCHEMA_INSTRUCTION = (
    "Answer with one JSON object and nothing else. It must be valid against this JSON schema:\n{schema}"
)
REASK_INSTRUCTION = "{sentence}\nAnswer again with the complete corrected JSON object and nothing else."
REASK_TEXT_INSTRUCTION = "{sentence}\nAnswer again."


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
    complaint = defused(instruction.format(sentence=trouble.sentence), frozenset())
    shown = defused(said_in(reply.text)[:QUOTED_CHARACTERS], frozenset())
    if not shown:
        return replace(call, messages=_with_appended(call.messages, complaint))
    return replace(call, messages=(*call.messages, Message("assistant", shown), Message("user", complaint)))


def _with_appended(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """`text` at the end of the last user message (as a message of its own where the last is another's)."""
    if messages and messages[-1].role == "user":
        return (*messages[:-1], Message("user", f"{messages[-1].content}\n\n{text}"))
    return (*messages, Message("user", text))
