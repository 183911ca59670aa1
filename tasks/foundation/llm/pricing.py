"""What a call cost in US dollars: the prices of configs/models.yaml, else those of genai-prices.

An unknown price, or usage the provider did not report, is None and never 0. Cached tokens are a part
of the prompt tokens and are priced apart; reasoning tokens are a part of the completion tokens.
"""

from __future__ import annotations

from collections.abc import Callable

import genai_prices

from tasks.foundation.llm.request import ModelSpec, Usage

OPENAI_URL = "https://api.openai.com/v1"

Pricing = Callable[[Usage], float | None]


def pricing_of(spec: ModelSpec) -> Pricing:
    """The function from usage to US dollars for this model."""
    if spec.prices is not None:
        return lambda usage: _by_rates(dict(spec.prices or {}), usage)
    if spec.provider in ("embedded", "scripted"):
        return lambda usage: None
    return lambda usage: _by_list(spec, usage)


def _by_rates(prices: dict[str, float], usage: Usage) -> float | None:
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.prompt_tokens)
    dollars = (
        (usage.prompt_tokens - cached) * prices["input_per_million"]
        + cached * prices.get("cached_input_per_million", prices["input_per_million"])
        + usage.completion_tokens * prices["output_per_million"]
    )
    return dollars / 1e6


def _by_list(spec: ModelSpec, usage: Usage) -> float | None:
    """The published price; None when the list does not know the endpoint or the model."""
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    counted = genai_prices.Usage(
        input_tokens=usage.prompt_tokens,
        cache_read_tokens=min(usage.cached_tokens or 0, usage.prompt_tokens),
        output_tokens=usage.completion_tokens,
    )
    try:
        if spec.provider == "google" and spec.base_url is None:
            found = genai_prices.calc_price(counted, spec.name, provider_id="google")
        else:
            found = genai_prices.calc_price(counted, spec.name, provider_api_url=spec.base_url or OPENAI_URL)
    except LookupError:
        return None
    return float(found.total_price)
