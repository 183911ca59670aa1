"""What a provider did, in our words, and without keys."""

from __future__ import annotations

import pytest

from tasks.foundation.errors import ModelError, ModelUnavailable
from tasks.foundation.llm.failures import brief, failure_of, redact, retry_after_of


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcDEF123456",
        "Incorrect API key provided: sk-abcd****************wxyz",
        "sk-ant-api03-abcdefabcdef",
        "https://x/v1?key=abcdefabc&y=1",
        "Authorization: Bearer abcdefabc",
        "AIzaSyAabcdefabcdefabcdef",
        "http://user:abcdefabc@host/v1",
    ],
)
def test_anything_shaped_like_a_key_is_taken_out(text: str) -> None:
    safe = redact(text)
    assert "abc" not in safe.replace("Incorrect API", "") and "[key]" in safe


def test_a_key_of_no_known_shape_is_taken_out_when_it_is_known() -> None:
    assert redact("key hunter2-x refused", ["hunter2-x", None, ""]) == "key [key] refused"


def test_ordinary_text_is_left_alone() -> None:
    text = "the risk-averse task-force asked a skilled model; sk-8 is a street"
    assert redact(text) == text


def test_a_brief_is_one_line_of_bounded_length() -> None:
    assert brief("a\n b" * 10_000).count("\n") == 0
    assert len(brief("x" * 10_000)) <= 600 + 2


@pytest.mark.parametrize(
    ("status", "detail", "kind"),
    [
        (429, "slow down", "rate_limited"),
        (500, "oops", "server"),
        (502, "bad gateway", "server"),
        (503, "overloaded", "server"),
        (529, "overloaded_error", "server"),
        (408, "timeout", "timeout"),
        (504, "DEADLINE_EXCEEDED", "timeout"),
        (499, "CANCELLED", "connection"),
        (413, "too large", "context_overflow"),
        (400, "context_length_exceeded maximum context length is 8192 tokens", "context_overflow"),
        (400, "request (6031 tokens) exceeds the available context size (4096 tokens)", "context_overflow"),
        (400, "prompt is too long: 300000 tokens > 200000 maximum", "context_overflow"),
        (400, "The input token count (2000000) exceeds the maximum number of tokens allowed", "context_overflow"),
        (400, "content_filter The response was filtered due to the prompt", "content_filter"),
        (400, "content_policy_violation", "content_filter"),
        (403, "Your chosen model requires moderation and your input was flagged", "content_filter"),
        (400, "Invalid value for 'temperature'", "refused"),
        (422, "unprocessable", "refused"),
    ],
)
def test_a_status_and_its_text_become_one_kind(status: int, detail: str, kind: str) -> None:
    found = failure_of(status, detail)
    assert isinstance(found, ModelError) and found.kind == kind


@pytest.mark.parametrize(
    ("status", "detail"),
    [
        (401, "unauthorized"),
        (402, "payment required"),
        (403, "forbidden"),
        (404, "The model `gpt-9` does not exist"),
        (400, "model_not_found"),
        (400, "INVALID_ARGUMENT API_KEY_INVALID API key not valid"),
        (429, "insufficient_quota You exceeded your current quota"),
    ],
)
def test_what_no_further_request_can_pass_makes_the_model_unavailable(status: int, detail: str) -> None:
    assert isinstance(failure_of(status, detail), ModelUnavailable)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "1.5", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_of(headers) == seconds
