"""configs/models.yaml, the profiles and the papers' tables agree; every alias makes a request without a network."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows import chain
from tasks.foundation.llm.models import ModelSpec, load_models
from tasks.foundation.llm.pricing import pricing_of
from tasks.foundation.llm.providers.bodies import request_body
from tasks.foundation.llm.providers.google_genai import GoogleProvider, build_config
from tasks.foundation.llm.providers.openai_compatible import OpenAIProvider
from tasks.foundation.llm.request import Message, ProviderCall, Usage
from tasks.foundation.settings import load_settings, profile_names

MODELS = load_models()
DATA = Path(__file__).parents[1] / "data"
FAMILIES = {"gpt", "claude", "gemini", "gemma", "qwen", "llama", "deepseek", "seed"}  # of the papers
FAMILIES |= {"grok", "mistral", "kimi", "glm", "minimax", "smollm", "a", "b", "c"}
TABLE_6 = {
    "gpt-4o": "gpt-4o-2024-08-06",
    "gpt-4o-mini": "gpt-4o-mini-2024-07-18",
    "claude-3.5-sonnet": "claude-3-5-sonnet-20241022",
    "claude-3.5-haiku": "claude-3-5-haiku-20241022",
    "qwen2-72b": "Qwen/Qwen2-72B-Instruct",
    "qwen2-7b": "Qwen/Qwen2-7B-Instruct",
    "llama-3.1-70b": "meta-llama/Llama-3.1-70B-Instruct",
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B-Instruct",
}
AGENTS = ["demo-qwen2-7b", "demo-llama-3.1-8b"]
SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}


def of(provider: str) -> list[ModelSpec]:
    return [spec for spec in MODELS.values() if spec.provider == provider]


def call(spec: ModelSpec) -> ProviderCall:
    return ProviderCall(spec, (Message("user", "hello"),), SCHEMA, "Verdict", 0.3, 500, 11, 0)


@pytest.fixture(autouse=True)
def a_key_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    for spec in MODELS.values():
        if spec.api_key_env:
            monkeypatch.setenv(spec.api_key_env, "a-key")


def test_every_family_is_a_known_one() -> None:
    assert {spec.family for spec in MODELS.values()} == FAMILIES


def test_thinking_pairs_are_one_model_with_the_switch_both_ways() -> None:
    pairs = [(spec, MODELS[spec.thinking_pair]) for spec in MODELS.values() if spec.thinking_pair]
    assert pairs
    for spec, other in pairs:
        assert other.thinking_pair == spec.alias
        assert (other.name, other.base_url, other.family) == (spec.name, spec.base_url, spec.family)
        assert other.thinking is not spec.thinking
        assert other.extra_body != spec.extra_body, f"{spec.alias} and {other.alias} would send the same request"


def test_every_alias_named_thinking_thinks() -> None:
    named = [spec for spec in MODELS.values() if spec.alias.endswith("-thinking")]
    assert all(spec.thinking for spec in named if not spec.alias.endswith("-non-thinking"))


def test_models_that_think_have_time_to() -> None:
    assert all(spec.timeout_seconds >= 300 for spec in MODELS.values() if spec.thinking)


def test_every_model_that_is_called_says_how_long_a_prompt_may_be() -> None:
    assert all(spec.context_tokens for spec in MODELS.values() if spec.provider != "scripted")


@pytest.mark.parametrize("profile", profile_names())
def test_every_alias_of_a_profile_exists(profile: str) -> None:
    named = set(_aliases(load_settings(profile).model_dump()))
    assert named and named <= set(MODELS)


def test_the_eyt_profile_names_the_17_targets_of_table_12() -> None:
    with (DATA / "eyt_table8.csv").open(encoding="utf-8") as file:
        slate = [row["target"].lower() for row in csv.DictReader(file)]
    settings = load_settings("eyt-paper")
    assert sorted(settings.conversation.targets) == sorted(slate)
    assert len(settings.conversation.targets) == 17
    assert settings.conversation.simulator == settings.judging.judges[0] == "gemini-3.1-pro-thinking"


def test_the_eyt_profile_has_the_ablation_of_table_14() -> None:
    judging = load_settings("eyt-paper").judging
    assert judging.panel == ["gemini-3.1-pro-thinking"] and judging.subsample is not None
    sample = judging.subsample
    assert (sample.judges, sample.n, sample.cells, sample.by) == (["deepseek-v4-pro"], 46, 11, ["pool", "target"])


@pytest.mark.parametrize("profile", ["demo-today", "eyt-today"])
def test_the_profiles_of_today_ask_no_retired_model_and_know_every_price(profile: str) -> None:
    settings = load_settings(profile)
    benchmark = chain.needed(settings)
    named = {alias for name in benchmark for alias in chain.stage(name).aliases(settings)}
    specs = [MODELS[alias] for alias in named]
    assert not [spec.alias for spec in specs if spec.retired]
    assert not [spec.alias for spec in specs if pricing_of(spec, batched=False)(Usage(1000, 0, 1000)) is None]


def test_the_demo_profile_of_today_has_a_panel_of_three_families_and_the_papers_sizes() -> None:
    today, paper = load_settings("demo-today"), load_settings("demo-paper")
    panel = [*today.voting.annotators, today.voting.arbiter]
    assert len({MODELS[alias].family for alias in panel}) == 3
    assert today.scenes.sample == paper.scenes.sample and today.conflicts.select == paper.conflicts.select == 1800


def test_the_eyt_profile_of_today_needs_no_waiver() -> None:
    settings = load_settings("eyt-today")
    assert settings.conversation.family_waiver is None
    parties = [*settings.judging.judges, settings.conversation.simulator, *settings.conversation.targets]
    n_others = len(parties) - len(settings.conversation.targets)
    families = [MODELS[alias].family for alias in parties]
    assert len(set(families[:n_others])) == 3 and not set(families[:n_others]) & set(families[n_others:])


@pytest.mark.parametrize("profile", ["demo-paper", "demo-today"])
def test_the_demo_profiles_ask_for_the_papers_mean_length(profile: str) -> None:
    section = load_settings(profile).dialogues
    assert (section.max_turns, section.target_turns) == (26, 18.3)


def test_the_demo_profile_names_the_models_of_table_2_but_for_the_papers_own_agents() -> None:
    with (DATA / "demo_table2.csv").open(encoding="utf-8") as file:
        n_evaluated = len(list(csv.DictReader(file)))
    settings = load_settings("demo-paper")
    for targets in (settings.awareness.targets, settings.interaction.targets):
        assert set(targets) == set(TABLE_6)
    assert len(TABLE_6) + len(AGENTS) == n_evaluated
    assert set(AGENTS) <= set(MODELS)


@pytest.mark.parametrize(("alias", "name"), TABLE_6.items())
def test_the_models_of_table_6_have_the_papers_versions(alias: str, name: str) -> None:
    assert MODELS[alias].name == name


@pytest.mark.parametrize("spec", of("openai"), ids=lambda spec: spec.alias)
async def test_an_openai_alias_makes_a_client_and_a_request(spec: ModelSpec) -> None:
    await OpenAIProvider(spec).close()
    sent = request_body(call(spec))
    assert sent["model"] == spec.name
    assert sent[spec.max_tokens_field] == 500
    assert ("temperature" in sent) is spec.sends_temperature
    kinds = {"json_schema": "json_schema", "json_object": "json_object", "prompt": None}
    assert sent.get("response_format", {}).get("type") == kinds[spec.structured]
    assert dict(spec.extra_body).items() <= sent.items()
    if spec.base_url and not spec.base_url.startswith("http://localhost"):
        assert spec.api_key_env is not None


@pytest.mark.parametrize("spec", of("google"), ids=lambda spec: spec.alias)
async def test_a_google_alias_makes_a_client_and_a_request(spec: ModelSpec) -> None:
    await GoogleProvider(spec).close()
    config = build_config(call(spec))
    assert config.max_output_tokens == 500
    assert config.response_json_schema == SCHEMA
    assert config.http_options is not None
    level = (config.http_options.extra_body or {})["generationConfig"]["thinkingConfig"]["thinkingLevel"]
    assert (level == "high") is spec.thinking


def test_a_price_is_known_or_null_and_0_only_where_nobody_charges() -> None:
    usage = Usage(prompt_tokens=1000, completion_tokens=100)
    prices = {spec.alias: pricing_of(spec)(usage) for spec in MODELS.values()}
    free = {alias for alias, dollars in prices.items() if dollars == 0}
    assert free == {spec.alias for spec in MODELS.values() if spec.api_key_env is None}
    if unknown := [alias for alias, dollars in prices.items() if dollars is None]:
        warnings.warn(f"no price is known for {', '.join(unknown)}: their costs stay null", stacklevel=1)


def _aliases(settings: dict[str, Any]) -> Iterator[str]:
    """The values of the settings that name models."""
    roles = ("designer", "distiller", "assessor", "writer", "annotators", "arbiter", "seeder")
    roles += ("targets", "partner", "simulator", "judges")
    for section in settings.values():
        if isinstance(section, dict):
            for role in roles:
                value = section.get(role)
                yield from [value] if isinstance(value, str) else value or []
