"""What is given twice is an error that names it: keys of YAML and JSON, settings, sources, aliases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from flows.chain import settled
from flows.chain.options import RunOptions
from tasks.foundation.errors import ConfigError
from tasks.foundation.llm.models import load_models
from tasks.foundation.settings import load_settings
from tasks.foundation.settings.sections import Source
from tasks.foundation.settings.strict_yaml import load_yaml
from tasks.foundation.sources import BadRow, open_source
from tasks.foundation.sources.literals import parse_object
from tasks.personas.readers.occupations import occupation_mapping
from tasks.scenes.wanted import filter_rules


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("run: {seed: 1}\nscenes: {max_turns: 9}\nrun:\n  seed: 2\n", "run is given twice, lines 1 and 3"),
        ("run:\n  budget:\n    max_calls: 5\n    max_calls: 5\n", "max_calls is given twice, lines 3 and 4"),
        ("scenes: {max_turns: 9, min_turns: 2, max_turns: 8}\n", "max_turns is given twice, line 1"),
        ("a: 1\n'a': 2\nb: 1\na: 3\n", "a is given twice, lines 1, 2 and 4"),
        ("list:\n- {x: 1}\n- {y: 1, x: 1, y: 2}\n", "y is given twice, line 3"),
    ],
)
def test_a_key_of_yaml_that_is_given_twice_is_named_with_its_lines(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(yaml.YAMLError, match=told):
        load_yaml(text)
    (tmp_path / "own.yaml").write_text(text)
    for read in (lambda path: load_settings(str(path)), load_models, occupation_mapping, filter_rules):
        with pytest.raises(ConfigError, match=rf"own\.yaml.*{told}"):
            read(tmp_path / "own.yaml")  # type: ignore[operator]


def test_keys_that_are_merged_in_may_be_given_again() -> None:
    text = "base: &base {a: 1, b: 2}\nmore: &more {<<: *base, b: 3}\nmost: {<<: *more, a: 4}\n"
    found = load_yaml(text)
    assert found == yaml.safe_load(text) and found["more"] == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ('{"id": 1, "text": "a", "text": "b"}', "text is given twice with different values"),
        ('{"id": 1, "of": {"in": [{"x": 1, "x": true}]}}', "x is given twice with different values"),
        ('{"id": 1, "text": "a", "text": null}', "text is given twice with different values"),
        ('{"id": 1, "text": {"a": 1, "b": 2}, "text": {"b": 2, "a": 1}}', None),
    ],
)
@pytest.mark.parametrize("kind", ["jsonl", "json"])
def test_a_row_that_gives_a_key_two_values_is_a_reject_and_the_others_are_read(
    row: str, told: str | None, kind: str, tmp_path: Path
) -> None:
    rows = ['{"id": 0}', row, '{"id": 2}']
    text = "\n".join(rows) if kind == "jsonl" else f"[{', '.join(rows)}]"
    (tmp_path / f"rows.{kind}").write_text(text)
    first, middle, last = open_source(Source(path=str(tmp_path / f"rows.{kind}")))
    assert first.value == {"id": 0} and last.value == {"id": 2}
    assert (told is None) == (middle.problem is None)
    assert told is None or (middle.problem is not None and told in middle.problem.reason)


@pytest.mark.parametrize("text", ['{"age": 3, "age": 4}', "{'pet': {'age': 3, 'age': 4}}"])
def test_an_object_within_a_cell_gives_each_key_once(text: str) -> None:
    with pytest.raises(BadRow, match="expected each key once in persona, found that age is given twice"):
        parse_object(text, "persona")


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["run.seed=1", "run.seed=2"], "run.seed is given twice, by 'run.seed=1' and 'run.seed=2'"),
        (["run.budget.max_calls=9", "run.budget={max_cost_usd: 1}"], "run.budget.max_calls is given twice"),
    ],
)
def test_a_setting_that_is_given_twice_is_refused(overrides: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        settled(RunOptions(profile="test", set=overrides))


def test_a_whole_may_be_given_before_its_part_and_the_same_value_again() -> None:
    overrides = ["run.budget={max_calls: 9}", "run.budget.max_tokens=5", "run.seed=3", "run.seed=3"]
    settings = load_settings("test", settled(RunOptions(profile="test", set=overrides)).overrides)
    assert (settings.run.budget.max_calls, settings.run.budget.max_tokens, settings.run.seed) == (9, 5, 3)


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"COLLOQUY_RUN__SEED": "1", "colloquy_run__seed": "2"}, "setting run.seed is given twice"),
        ({"COLLOQUY_RUN": json.dumps({"seed": 1}), "COLLOQUY_RUN__SEED": "2"}, "COLLOQUY_RUN and COLLOQUY_RUN__SEED"),
        ({"COLLOQUY_RUN": '{"seed": 1, "seed": 2}'}, "COLLOQUY_RUN: seed is given twice"),
        ({"colloquy_run__sed": "1"}, "colloquy_run__sed is no setting"),
    ],
)
def test_a_setting_that_two_environment_variables_give_is_refused(
    variables: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=told):
        load_settings("test")


@pytest.mark.parametrize(
    "override",
    [
        "voting.annotators=[scripted-a, scripted-b, scripted-a]",
        "metrics.alpha_sweep=[0.1, 0.2, 0.1]",
        "scenes.sources=[{corpus: c, reader: soda, path: x}, {corpus: c, reader: soda, path: x}]",
        "personas.inspirations=[{path: x, language: en}, {path: x, language: English}]",
    ],
)
def test_an_entry_of_a_list_that_is_given_twice_is_refused(override: str) -> None:
    with pytest.raises(ConfigError, match=r"expected each once, found .* again"):
        load_settings("test", [override])
