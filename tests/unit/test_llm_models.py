"""configs/models.yaml → specs; keys and weights are reported before anything is called."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation import weights
from tasks.foundation.errors import ConfigError, ModelUnavailable
from tasks.foundation.llm.models import KEYLESS, ModelSpec, api_key, check_ready, load_models, parse_models

ENTRY: dict[str, Any] = {"provider": "openai", "name": "gpt-x", "family": "gpt", "api_key_env": "SOME_KEY"}


def one(**changes: Any) -> ModelSpec:
    return parse_models({"models": {"x": ENTRY | changes}})["x"]


def test_the_shipped_file_loads_and_has_the_embedded_and_scripted_families() -> None:
    models = load_models()
    families = {spec.alias: spec.family for spec in models.values()}
    assert {families[name] for name in ("qwen2.5-coder-0.5b", "smollm2-135m", "gemma-3-270m")} == {
        "qwen",
        "smollm",
        "gemma",
    }
    assert [families[f"scripted-{letter}"] for letter in "abc"] == ["a", "b", "c"]


def test_every_shipped_embedded_alias_names_known_weights() -> None:
    names = [spec.name for spec in load_models().values() if spec.provider == "embedded"]
    assert names and set(names) <= set(weights.CATALOGUE)


def test_no_two_shipped_aliases_are_the_same_model() -> None:
    identities = [str(spec.identity()) for spec in load_models().values()]
    assert len(set(identities)) == len(identities)


def test_an_unknown_alias_lists_near_names() -> None:
    with pytest.raises(ConfigError, match="gpt-4o-mini"):
        load_models()["gpt4o-mini"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"temprature": 0}, "temprature"),
        ({"provider": "openia"}, "openia"),
        ({"family": ""}, "family"),
        ({"name": ""}, "name"),
        ({"alias": "y"}, "alias"),
        ({"max_in_flight": 0}, "max_in_flight"),
        ({"api_key_env": "sk-abcdefghijkl"}, "api_key_env"),
        ({"base_url": "localhost:8000"}, "base_url"),
        ({"base_url": "http://localhost:99999/v1"}, "port"),
        ({"prices": {"input_per_million": float("inf"), "output_per_million": 1}}, "finite"),
        ({"base_url": "http://user:pass@host/v1"}, "api_key_env"),
        ({"base_url": "http://host/v1?key=abc"}, "api_key_env"),
        ({"provider": "embedded"}, "api_key_env"),
        ({"provider": "google", "api_key_env": None}, "api_key_env"),
        ({"thinking_pair": "nobody"}, "nobody"),
        ({"prices": {"input_per_million": 1}}, "output_per_million"),
    ],
)
def test_a_wrong_entry_is_refused_with_the_field(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        one(**changes)


@pytest.mark.parametrize(
    "plain", [{}, {"thinking_pair": "loud"}, {"thinking_pair": "quiet"}, {"thinking_pair": "loud", "thinking": True}]
)
def test_a_thinking_pair_names_one_another_with_the_switch_both_ways(plain: dict[str, Any]) -> None:
    entry = {"provider": "openai", "name": "m", "family": "f"}
    both = {"loud": {**entry, "thinking": True, "thinking_pair": "quiet"}, "quiet": {**entry, **plain}}
    if plain == {"thinking_pair": "loud"}:
        assert parse_models({"models": both})["quiet"].thinking_pair == "loud"
        return
    with pytest.raises(ConfigError, match="thinking_pair"):
        parse_models({"models": both})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml"):
        load_models(tmp_path / "none.yaml")


def test_a_missing_key_is_reported_by_the_name_of_its_variable() -> None:
    assert "SOME_KEY" in str(check_ready(one(), {}))
    assert "'x'" in str(check_ready(one(), {"SOME_KEY": "  "}))
    assert check_ready(one(), {"SOME_KEY": "secret"}) is None
    with pytest.raises(ModelUnavailable, match="SOME_KEY"):
        api_key(one(), {})


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("\u201csk-QQQQQQQQ\u201d", "LEFT DOUBLE QUOTATION MARK"),
        ('"sk-QQQQQQQQ"', "quotes"),
        ("'sk-QQQQQQQQ'", "quotes"),
        ("sk-QQQQ\nQQQQ", "U\\+000A"),
        ("sk-QQQQQQQQ\r\n", "U\\+000D"),
        (" sk-QQQQQQQQ", "SPACE"),
        ("sk-QQQQQQQQ\t", "U\\+0009"),
        ("sk-QQQQ\x00QQQQ", "U\\+0000"),
        ("sk-QQQQ\x7f", "U\\+007F"),
        ("sk-QQQQ\u00e9QQQQ", "E WITH ACUTE"),
        ("sk-QQQQ\u200bQQQQ", "ZERO WIDTH SPACE"),
        ("\uff53\uff4b-QQQQQQQQ", "FULLWIDTH"),
        (" \n ", "not set"),
    ],
)
def test_a_key_that_cannot_be_a_header_is_refused_by_its_variable_and_not_shown(key: str, named: str) -> None:
    with pytest.raises(ModelUnavailable, match=named) as caught:
        api_key(one(), {"SOME_KEY": key})
    assert "SOME_KEY" in str(caught.value) and "QQQ" not in str(caught.value)
    assert check_ready(one(), {"SOME_KEY": key}) == str(caught.value), "so it is refused before anything starts"


def test_an_endpoint_without_a_key_is_ready() -> None:
    spec = one(api_key_env=None, base_url="http://localhost:8000/v1/")
    assert check_ready(spec, {}) is None
    assert api_key(spec, {}) == KEYLESS
    assert spec.base_url == "http://localhost:8000/v1"


def test_missing_weights_are_reported_with_the_command_that_gets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(weights.MODELS_DIR_ENV, str(tmp_path))
    report = check_ready(load_models()["smollm2-135m"], {})
    assert report is not None and "colloquy models pull smollm2-135m" in report


def test_a_scripted_model_that_names_nothing_is_reported() -> None:
    report = check_ready(one(provider="scripted", name="no.such:thing", api_key_env=None), {})
    assert report is not None and "no.such:thing" in report


def test_limits_and_keys_are_no_part_of_a_models_identity() -> None:
    assert one().identity() == one(max_in_flight=99, api_key_env="OTHER", timeout_seconds=1).identity()
    assert one().identity() != one(name="gpt-y").identity()
    assert one().identity() != one(base_url="http://localhost/v1").identity()


def test_a_model_that_its_provider_has_shut_down_cannot_be_asked_from_that_day_on() -> None:
    spec = one(retired="2026-03-01")
    assert check_ready(spec, {"SOME_KEY": "secret"}, date(2026, 2, 28)) is None
    told = check_ready(replace(spec, successor="y"), {"SOME_KEY": "secret"}, date(2026, 3, 1))
    assert told is not None
    assert "was shut down by its provider on 2026-03-01; y stands in for it" in told


def test_the_successor_of_a_retired_model_is_an_alias() -> None:
    with pytest.raises(ConfigError, match="successor of 'x'"):
        one(retired="2026-03-01", successor="nobody")
