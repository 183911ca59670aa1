"""Tokens as providers report them, and what they cost: a number that cannot be right counts as not reported."""

from __future__ import annotations

import json
import math
from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.llm.cache import parse_usage
from tasks.foundation.llm.models import parse_models
from tasks.foundation.llm.pricing import pricing_of
from tasks.foundation.llm.providers import bodies, google_genai
from tasks.foundation.llm.request import MOST_TOKENS, Usage

RATES = {
    "input_per_million": 10,
    "cached_input_per_million": 1,
    "cache_write_per_million": 12.5,
    "output_per_million": 100,
}
ENTRY = {"provider": "openai", "name": "m", "family": "f", "prices": RATES}
PRICE = pricing_of(parse_models({"models": {"m": ENTRY}})["m"])

WHOLE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}

# dollars by hand: fresh x 10 + cached x 1 + written x 12.5 + completion x 100, per million
CASES: list[tuple[str, Any, Usage, float | None]] = [
    ("as it should be", WHOLE, Usage(1000, None, 100), 0.02),
    ("whole numbers as floats", {name: float(n) for name, n in WHOLE.items()}, Usage(1000, None, 100), 0.02),
    ("cached at the top", {**WHOLE, "cached_tokens": 900}, Usage(1000, 900, 100), 0.0119),
    ("cached under a second name", {**WHOLE, "cache_read_input_tokens": 900}, Usage(1000, 900, 100), 0.0119),
    ("cached under a third name", {**WHOLE, "prompt_cache_hit_tokens": 900}, Usage(1000, 900, 100), 0.0119),
    ("more cached than there was", {**WHOLE, "cached_tokens": 1001}, Usage(1000, None, 100), 0.02),
    (
        "written to the cache",
        {**WHOLE, "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 900}},
        Usage(1000, 0, 100, None, 900),
        0.02225,
    ),
    (
        "written and read",
        {**WHOLE, "cache_creation_input_tokens": 500, "cache_read_input_tokens": 300},
        Usage(1000, 300, 100, None, 500),
        0.01855,
    ),
    ("thoughts in the total only", {**WHOLE, "total_tokens": 1700}, Usage(1000, None, 700), 0.08),
    (
        "thoughts apart, without a total",
        {"prompt_tokens": 1000, "completion_tokens": 100, "completion_tokens_details": {"reasoning_tokens": 600}},
        Usage(1000, None, 700, 600),
        0.08,
    ),
    (
        "thoughts within",
        {**WHOLE, "completion_tokens_details": {"reasoning_tokens": 60}},
        Usage(1000, None, 100, 60),
        0.02,
    ),
    (
        "a sum beyond what JSON counts",
        {"prompt_tokens": 1000, "completion_tokens": 1, "completion_tokens_details": {"reasoning_tokens": MOST_TOKENS}},
        Usage(1000, None, None, MOST_TOKENS),
        None,
    ),
    ("a total that is too small", {**WHOLE, "total_tokens": 7}, Usage(1000, None, 100), 0.02),
    ("the prompt and the total", {"prompt_tokens": 1000, "total_tokens": 1100}, Usage(1000, None, 100), 0.02),
    ("all zero", dict.fromkeys(WHOLE, 0) | {"prompt_tokens_details": {"cached_tokens": 0}}, Usage(), None),
    ("no prompt", {**WHOLE, "prompt_tokens": 0, "total_tokens": 100}, Usage(None, None, 100), None),
    ("beyond what JSON counts", {**WHOLE, "prompt_tokens": 2**64 - 1, "total_tokens": 0}, Usage(None, None, 100), None),
    ("a number of thirty digits", {**WHOLE, "completion_tokens": 10**30, "total_tokens": 0}, Usage(1000), None),
    ("below zero", {"prompt_tokens": 1000, "completion_tokens": -100}, Usage(1000), None),
    ("half a token", {"prompt_tokens": 1000.5, "completion_tokens": 100}, Usage(None, None, 100), None),
    ("no numbers", {"prompt_tokens": math.nan, "completion_tokens": math.inf}, Usage(), None),
    ("words, truth and lists", {"prompt_tokens": "1000", "completion_tokens": True, "total_tokens": []}, Usage(), None),
    ("no object", [1000, 100], Usage(), None),
]


@pytest.mark.parametrize(
    ("usage", "expected", "dollars"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_reported_tokens_mean_one_thing_and_cost_what_they_should(
    usage: Any, expected: Usage, dollars: float | None
) -> None:
    found = bodies.read_usage(usage, "some text")
    assert found == expected
    assert PRICE(found) == (None if dollars is None else pytest.approx(dollars))


def test_a_reply_without_text_may_have_no_tokens() -> None:
    assert bodies.read_usage({"prompt_tokens": 9, "completion_tokens": 0}, "") == Usage(9, None, 0)


def test_gemini_s_total_tells_what_its_parts_leave_out() -> None:
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1700}
    assert google_genai.read_usage(usage, "text") == Usage(1000, None, 700)
    assert google_genai.read_usage({**usage, "thoughtsTokenCount": 600}, "text") == Usage(1000, None, 700, 600)
    assert google_genai.read_usage(dict.fromkeys(usage, 0), "text") == Usage()
    vast = {"promptTokenCount": 9, "candidatesTokenCount": MOST_TOKENS, "thoughtsTokenCount": MOST_TOKENS}
    assert google_genai.read_usage(vast, "text") == Usage(9, None, None, MOST_TOKENS)


NUMBERS = st.one_of(
    st.sampled_from([1, MOST_TOKENS, MOST_TOKENS + 1]),
    st.integers(),
    st.floats(),
    st.none(),
    st.booleans(),
    st.text(max_size=3),
)
NAMES = ["prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "cache_write_tokens"]


@given(st.dictionaries(st.sampled_from(NAMES), NUMBERS), NUMBERS)
def test_whatever_is_reported_can_be_stored_and_priced(usage: dict[str, Any], reasoning: Any) -> None:
    found = bodies.read_usage({**usage, "completion_tokens_details": {"reasoning_tokens": reasoning}}, "text")
    assert parse_usage(json.dumps(astuple(found))) == found, "the cache reads it again"
    assert (found.cached_tokens or 0) <= (found.prompt_tokens or 0)
    assert found.completion_tokens is None or (found.reasoning_tokens or 0) <= found.completion_tokens
    assert (PRICE(found) is None) == (not found.is_whole)
