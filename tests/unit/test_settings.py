from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tasks.foundation.errors import ConfigError
from tasks.foundation.settings import load_settings, profile_names, without_knobs
from tasks.foundation.settings.sections import Knob, PerLanguage


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith("COLLOQUY_") and "__" in name:
            monkeypatch.delenv(name)


def test_the_command_line_beats_the_environment_beats_the_profile_beats_the_base(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert load_settings("test").personas.pool_size == 20
    assert load_settings("test").dialogues.temperature == 0.8
    monkeypatch.setenv("COLLOQUY_PERSONAS__POOL_SIZE", "30")
    assert load_settings("test").personas.pool_size == 30
    assert load_settings("test", ["personas.pool_size=40"]).personas.pool_size == 40


def test_a_part_of_a_section_is_set_without_losing_the_rest() -> None:
    settings = load_settings("test", ["scenes.sample.en=2"])
    assert (settings.scenes.sample.en, settings.scenes.sample.zh) == (2, 6)


def test_a_profile_may_be_like_another_but_for_what_it_sets(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "like: eyt-paper\njudging: {subsample: {n: 5}}\nconversation: {targets: [gpt-5.5]}\n", encoding="utf-8"
    )
    mine, paper = load_settings(str(file)), load_settings("eyt-paper")
    assert mine.conversation.targets == ["gpt-5.5"] and mine.conversation.simulator == paper.conversation.simulator
    assert paper.judging.subsample and mine.judging.subsample == paper.judging.subsample.model_copy(update={"n": 5})
    assert mine.personas == paper.personas


@pytest.mark.parametrize("like", ["nowhere", "demo-today", "[demo]"])
def test_a_profile_is_like_one_that_there_is_and_that_is_like_no_other(tmp_path: Path, like: str) -> None:
    (tmp_path / "mine.yaml").write_text(f"like: {like}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="expected `like` to name one of configs/profiles that is like no other"):
        load_settings(str(tmp_path / "mine.yaml"))


@pytest.mark.parametrize("profile", profile_names())
def test_every_profile_is_valid(profile: str) -> None:
    load_settings(profile)


@pytest.mark.parametrize(
    ("profile", "override", "message"),
    [
        ("tset", "run.seed=1", r"profile 'tset' does not exist; expected one of .*did you mean 'test'"),
        ("test", "votng.arbiter=x", r"setting 'votng' does not exist \(did you mean 'voting'\?\)"),
        ("test", "voting.arbitr=x", r"setting 'voting.arbitr' does not exist \(did you mean 'voting.arbiter'\?\)"),
        ("test", "voting.annotators=[a]", r"setting 'voting.annotators': List should have at least 2 items"),
        ("test", "conflicts.if_none=maybe", r"setting 'conflicts.if_none'"),
        ("test", "dialogues.min_turns=9", r"min_turns \(9\) is above max_turns \(6\)"),
        ("test", "personas.sources=[{pool: a, reader: nemotron}]", r"either `path` .* or `hub`"),
        ("test", "personas.sources=[{pool: a, reader: nemotron, hub: x/y}]", r"needs a pinned `revision`"),
        ("test", "voting", r"expected section.key=value, found 'voting'"),
        ("test", "voting.arbiter=[", r"is not YAML"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_expected(profile: str, override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(profile, [override])


def test_a_misspelt_environment_variable_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLOQUY_VOTING__ARBITR", "x")
    with pytest.raises(ConfigError, match=r"COLLOQUY_VOTING__ARBITR is no setting .*COLLOQUY_VOTING__ARBITER"):
        load_settings("test")


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings("test").voting.arbiter = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    "knobs",
    [
        {"voting.shard_rows": 3, "voting.max_failure_rate": 0.1, "voting.mode": "batch", "voting.budget.max_calls": 5},
        {"llm.batch.poll_seconds": 9, "llm.outage_seconds": 9, "llm.replay_only": "true", "llm.share_limits": "true"},
        {"run.benchmark": "demo", "run.budget.max_calls": 5, "run.rows_in_flight": 3, "run.lock_wait_seconds": 3},
        {"personas.mode": "batch"},
    ],
)
def test_a_knob_is_no_part_of_what_a_fingerprint_hashes(knobs: dict[str, Any]) -> None:
    turned = load_settings("test", [f"{name}={value}" for name, value in knobs.items()])
    for section in {name.partition(".")[0] for name in knobs}:
        before, after = getattr(load_settings("test"), section), getattr(turned, section)
        assert before != after and without_knobs(before) == without_knobs(after)


def test_another_way_of_searching_is_another_fingerprint() -> None:
    exact, approximate = (load_settings("test", [f"personas.dedup.search={way}"]) for way in ("exact", "approximate"))
    assert without_knobs(exact.personas) != without_knobs(approximate.personas)


def test_settings_that_are_no_knobs_stay_wherever_they_stand() -> None:
    settings = load_settings("test")
    for name, section in settings:
        left = without_knobs(section)
        for field, value in section.model_dump(mode="json").items():
            marked = Knob in type(section).model_fields[field].metadata
            assert (field not in left) == marked, f"{name}.{field}"
            nested = isinstance(getattr(section, field), BaseModel | list)
            assert marked or nested or left[field] == value, f"{name}.{field}"


@pytest.mark.parametrize("name", ["batch", "mode", "search", "budget", "shard_rows", "benchmark"])
def test_a_users_own_names_are_kept_whatever_they_are(name: str) -> None:
    source = "{{pool: p, reader: mapped, path: x, mapping: {{description: {0}}}, where: {{{0}: [{1}]}}}}"
    one, other = (load_settings("test", [f"personas.sources=[{source.format(name, value)}]"]) for value in "AB")
    assert without_knobs(one.personas) != without_knobs(other.personas)
    assert without_knobs(one.personas)["sources"][0]["mapping"] == {"description": name}


def test_no_setting_holds_a_secret() -> None:
    base = (Path(__file__).parents[2] / "configs" / "base.yaml").read_text(encoding="utf-8").lower()
    assert not any(word in base for word in ("api_key", "password", "secret"))


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("metrics.resamples=999999999999", "less than or equal to 100000"),
        ("awareness.targets=[scripted-c, scripted-c]", "expected each once, found scripted-c again"),
        ("judging.judges=[scripted-a, scripted-a]", "expected each once, found scripted-a again"),
        ("scenes.min_turns=40", "min_turns (40) is above max_turns"),
        ("run.budget.max_cost_usd=.inf", "finite"),
        ("llm.retry_base_seconds=.inf", "finite"),
    ],
)
def test_a_value_that_cannot_work_is_refused(override: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings("test", [override])
    assert says in str(caught.value)


def test_numbers_in_a_filter_are_read_as_they_stand_in_the_source() -> None:
    source = "{pool: p, reader: nemotron, path: x, where: {age: [30, 31.5], country: [USA]}}"
    (found,) = load_settings("test", [f"personas.sources=[{source}]"]).personas.sources
    assert found.where == {"age": ["30", "31.5"], "country": ["USA"]}


@pytest.mark.parametrize("text", ["1: 2", "null: 2", "personas: {3: 4}", "run: {budget: {true: 1}}"])
def test_a_profile_with_names_that_are_no_text_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="expected names of settings, found"):
        load_settings(str(tmp_path / "mine.yaml"))


@pytest.mark.parametrize("profile", ["~nobody-of-that-name/x.yaml", f"{'x' * 300}.yaml"])
def test_a_path_that_cannot_be_is_no_profile(profile: str) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        load_settings(profile)


def test_names_of_settings_are_small_letters() -> None:
    with pytest.raises(ConfigError, match=r"small letters, found 'PERSONAS\.pool_size=1'"):
        load_settings("test", ["PERSONAS.pool_size=1"])


def test_a_profile_may_be_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    with pytest.raises(ConfigError, match=r"there is no such file; looked for .*mine\.yaml"):
        load_settings(str(file))
    file.write_text("description: mine\npersonas: {pool_size: 7}\n", encoding="utf-8")
    assert load_settings(str(file)).personas.pool_size == 7


def test_one_switch_leaves_a_language_out_of_every_count() -> None:
    settings = load_settings("test", ["run.languages=[English]"])
    counts = [
        value
        for name in type(settings).model_fields
        for value in dict(getattr(settings, name)).values()
        if isinstance(value, PerLanguage)
    ]
    assert len(counts) == 5 and all(each.zh == 0 and each.en > 0 for each in counts)
    assert settings.personas.languages == settings.scenes.languages == ["en"]
    with pytest.raises(ConfigError, match="languages"):
        load_settings("test", ["run.languages=[de]"])
    with pytest.raises(ConfigError, match="languages"):
        load_settings("test", ["run.languages=[]"])
