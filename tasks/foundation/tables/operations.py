"""Rows that every stage writes beside its own: rejects, the request ledger, the replies it cites."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from tasks.foundation.tables.types import Float64, Int32, Int64, Json, Row


class Reject(Row):
    stage: str = Field(description="the stage that could not use the row")
    row_key: str = Field(description="the row's primary key parts joined by '/'; or file and line of a source row")
    kind: str = Field(description="one of the engine's failure kinds, or parse, schema, filter")
    reason: str = Field(description="expected, found, where")
    retryable: bool = Field(description="the next run tries it again")
    attempts: Int32 = Field(description="provider calls made for it", ge=0)
    payload: Json | None = Field(description="the row or reply in question; null: nothing to show")


class LlmCall(Row):
    request_id: str = Field(description="hash of the logical request")
    stage: str = Field(description="stage that asked")
    row_key: str = Field(description="row it asked for")
    purpose: str = Field(description="distil, design, assess, reflect, write, annotate, review, vote …")
    revision: Int32 = Field(description="revision of the stage's commit that asked", ge=0)
    alias: str = Field(description="model alias")
    model: str = Field(description="the provider's name of the model")
    family: str = Field(description="model family")
    provider: str = Field(description="a kind of provider, as in configs/models.yaml")
    base_url: str | None = Field(description="endpoint; null: the provider's own")
    prompt_fingerprint: str = Field(description="hash of the prompt template")
    temperature: Float64 = Field(description="as sent")
    seed_sent: Int64 | None = Field(description="the seed that was sent; null: none was")
    model_reported: str | None = Field(description="what the provider says answered; null: not said")
    prompt_tokens: Int64 | None = Field(description="summed over attempts; null: not reported")
    cached_tokens: Int64 | None = Field(description="of them read from the provider's cache; null: not reported")
    cache_write_tokens: Int64 | None = Field(
        description="of the prompt, written to the provider's cache; null: not reported"
    )
    completion_tokens: Int64 | None = Field(description="summed over attempts, reasoning included; null: not reported")
    reasoning_tokens: Int64 | None = Field(description="of them reasoning; null: not reported")
    cost_usd: Float64 | None = Field(description="US dollars; null: price unknown")
    latency_seconds: Float64 = Field(description="time in provider calls, seconds")
    attempts: Int32 = Field(description="provider calls of this request", ge=0)
    from_cache: bool = Field(description="false when this stage run made the call, in whichever process")
    finish_reason: str | None = Field(description="as the provider says; null: no reply")
    error_kind: str | None = Field(description="why it failed; null: answered")
    created_at: datetime = Field(description="UTC")


class Reply(Row):
    request_id: str = Field(description="hash of the logical request")
    prompt: Json = Field(description="messages as sent")
    reply: str | None = Field(description="the last reply's text; null: none came")
