"""What calls cost in US dollars: the prices of configs/models.yaml, else those of genai-prices.

An unknown price, or usage the provider did not report, is None and never 0. Tokens read from the provider's cache
and tokens written to it are parts of the prompt tokens and are priced apart; reasoning tokens are a part of the
completion tokens. Prices are read from the installed package; nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tasks.foundation.llm.models import ModelSpec, Prices
from tasks.foundation.llm.request import Usage

Pricing = Callable[[Usage], float | None]
"""From the usage of one call to US dollars. One call, not a sum: some prices rise with the length of a prompt."""


def pricing_of(spec: ModelSpec, *, batched: bool = False) -> Pricing:
    """The price of one call to this model; `batched`: of a call sent through the provider's batch API."""
    if spec.prices is not None:
        prices, share = spec.prices, _batch_share(spec) if batched else 1.0
        return lambda usage: _multiply(share, _price_by_rates(prices, usage))
    if spec.weights is not None:
        return lambda usage: 0.0
    return lambda usage: _price_by_list(spec, usage, batched)


@dataclass(frozen=True, slots=True)
class Dollars:
    """A sum of prices: `known` is that of those that are known; `n_unpriced` are not, so the sum may be higher."""

    known: float
    n_unpriced: int

    @property
    def exact(self) -> float | None:
        """The sum; None where a price is missing."""
        return None if self.n_unpriced else self.known


def sum_of(prices: Iterable[float | None]) -> Dollars:
    """
    >>> sum_of([0.5, None, 0.25])
    Dollars(known=0.75, n_unpriced=1)
    """
    every = list(prices)
    known = [price for price in every if price is not None]
    return Dollars(sum(known), len(every) - len(known))


def _price_by_rates(prices: Prices, usage: Usage) -> float | None:
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    fresh = prices.input_per_million
    cached_rate, write_rate = prices.cached_input_per_million, prices.cache_write_per_million
    cached, written = _split_prompt(usage)
    dollars = (
        (usage.prompt_tokens - cached - written) * fresh
        + cached * (fresh if cached_rate is None else cached_rate)
        + written * (fresh if write_rate is None else write_rate)
        + usage.completion_tokens * prices.output_per_million
    )
    return dollars / 1e6


def _split_prompt(usage: Usage) -> tuple[int, int]:
    """Tokens of the prompt that were read from the provider's cache and that were written to it; no token is both."""
    prompt = usage.prompt_tokens or 0
    cached = min(usage.cached_tokens or 0, prompt)
    return cached, min(usage.cache_write_tokens or 0, prompt - cached)


def _price_by_list(spec: ModelSpec, usage: Usage, batched: bool) -> float | None:
    """The published price; None when the list does not know the endpoint, the model or its batch price."""
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    live = _look_up(spec, usage, {})
    if not batched:
        return live
    if spec.batch_share is None:
        listed = _look_up(spec, usage, {"processing": "batch"})
        if listed != live:
            return listed
    return _multiply(_batch_share(spec), live)


def _look_up(spec: ModelSpec, usage: Usage, context: dict[str, str]) -> float | None:
    """The list's price at the endpoint, in a `context` that it has no price for the usual one; None where the list does
    not know the endpoint or the model, or has no price of it."""
    if spec.endpoint is None:
        return None
    cached, written = _split_prompt(usage)
    import genai_prices  # takes longer to import than most commands take to answer

    counted = genai_prices.Usage(
        input_tokens=usage.prompt_tokens,
        cache_read_tokens=cached,
        cache_write_tokens=written,
        output_tokens=usage.completion_tokens,
    )
    try:
        found = genai_prices.calc_price(counted, spec.name, provider_api_url=spec.endpoint, price_context=context)
    except LookupError:
        return None
    priced = any(price is not None for price in vars(found.model_price).values())
    return float(found.total_price) if priced else None


def _batch_share(spec: ModelSpec) -> float | None:
    """What the settings say, else what the vendor says of its own endpoint, else None: unknown."""
    if spec.batch_share is not None:
        return spec.batch_share
    return spec.kind.batch_share if spec.endpoint == spec.kind.url else None


def _multiply(share: float | None, price: float | None) -> float | None:
    if price == 0:
        return 0.0
    return None if share is None or price is None else share * price
