"""What a call costs, worked out by hand; and that an unknown price is None wherever it is met."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tasks.foundation.llm.models import ModelSpec, parse_models
from tasks.foundation.llm.pricing import Dollars, pricing_of, sum_of
from tasks.foundation.llm.request import Usage

ENTRY: dict[str, Any] = {"provider": "openai", "name": "gpt-4o-2024-08-06", "family": "gpt", "api_key_env": "SOME_KEY"}
RATES = {"input_per_million": 10, "cached_input_per_million": 1, "output_per_million": 100}
CALL = Usage(1000, 400, 50, 20)


def one(**changes: Any) -> ModelSpec:
    entry = {name: value for name, value in (ENTRY | changes).items() if value is not None}
    return parse_models({"models": {"x": entry}})["x"]


def test_given_prices_count_cached_tokens_at_their_own_rate_and_reasoning_once() -> None:
    # 600 fresh x 10 + 400 cached x 1 + 50 (20 of them reasoning) x 100 = 11,400 dollars per million calls
    assert pricing_of(one(prices=RATES))(CALL) == pytest.approx(0.0114)


def test_listed_prices_are_found_by_endpoint_and_model() -> None:
    # 600 x 2.50 + 400 x 1.25 + 100 x 10 dollars per million tokens
    assert pricing_of(one())(Usage(1000, 400, 100, None)) == pytest.approx(0.003)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "no-such-model"},
        {"base_url": "http://localhost:8000/v1"},
        {"base_url": "https://api.githubcopilot.com"},
        {"provider": "scripted", "name": "a.module:function", "api_key_env": None},
    ],
    ids=["unlisted", "a server of one's own", "listed without a price", "scripted"],
)
def test_a_price_nobody_knows_is_none(changes: dict[str, Any]) -> None:
    assert pricing_of(one(**changes))(Usage(1000, 0, 100, None)) is None
    assert pricing_of(one(**changes), batched=True)(Usage(1000, 0, 100, None)) is None


@pytest.mark.parametrize("prices", [RATES, None])
def test_usage_that_was_not_reported_has_no_price(prices: dict[str, float] | None) -> None:
    assert pricing_of(one(prices=prices))(Usage()) is None


def test_what_runs_in_this_process_costs_nothing() -> None:
    spec = one(provider="embedded", name="qwen2.5-coder-0.5b", api_key_env=None)
    assert pricing_of(spec)(CALL) == 0


@pytest.mark.parametrize(
    ("changes", "dollars"),
    [
        ({"prices": RATES}, 0.0114 / 2),
        ({}, (1000 * 1.25 + 50 * 5) / 1e6),  # the list discounts cached tokens no further
        ({"provider": "google", "name": "gemini-2.5-flash", "prices": RATES}, 0.0114 / 2),
        ({"prices": RATES, "batch_share": 0.6}, 0.0114 * 0.6),
        ({"batch_share": 0.25}, (600 * 2.5 + 400 * 1.25 + 50 * 10) / 4e6),
        ({"prices": RATES, "base_url": "https://api.anthropic.com/v1"}, None),
        ({"prices": {"input_per_million": 0, "output_per_million": 0}, "base_url": "http://localhost:8000/v1"}, 0),
        ({"prices": RATES, "base_url": "https://api.anthropic.com/v1", "batch_share": 0.5}, 0.0114 / 2),
        ({"name": "claude-3-5-sonnet-20241022", "base_url": "https://api.anthropic.com/v1"}, None),
    ],
)
def test_a_batched_call_costs_its_share_where_that_is_known(changes: dict[str, Any], dollars: float | None) -> None:
    assert pricing_of(one(**changes), batched=True)(CALL) == (None if dollars is None else pytest.approx(dollars))


def test_prices_are_read_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **named: Any) -> None:
        raise AssertionError("a price was looked up on the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert pricing_of(one())(CALL) is not None
    assert pricing_of(one(), batched=True)(CALL) is not None


def test_a_sum_says_how_many_prices_it_lacks() -> None:
    assert sum_of([0.5, None, 0.25]) == Dollars(0.75, 1)
    assert (sum_of([0.5, None]).exact, sum_of([]).exact) == (None, 0)
