"""What has to be said of a stage outside of its own package is said: settings, deployment, import contract, report."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import yaml

from flows import chain, stages
from tasks.foundation import ROOT
from tasks.foundation.settings import Settings
from tasks.foundation.stage import Stage
from tasks.foundation.tables import TABLES

BASE = "configs/base.yaml"
SETTINGS = "tasks/foundation/settings/__init__.py"


@dataclass(frozen=True)
class Missing:
    """A text that a file lacks, and the line that it belongs behind (or before)."""

    file: str
    place: str
    text: str

    def __str__(self) -> str:
        return f"# {self.file}, {self.place}\n{self.text}"


def missing_of(stage: Stage) -> Iterator[Missing]:
    """Every text that is missing for a stage, in the order in which it is looked for."""
    name, section = stage.name, stage.section.__name__
    field = Settings.model_fields.get(name)
    if field is None or field.annotation is not stage.section:
        yield Missing(SETTINGS, "before `    personas: sections.PersonasSection`", f"    {name}: sections.{section}")
    if name not in yaml.safe_load((ROOT / BASE).read_text(encoding="utf-8")):
        yield Missing(BASE, "at the end", f"{name}:\n  shard_rows: 8\n  max_failure_rate: 0.5")
    if f"flows.stages:{name}" not in entrypoints():
        deployment = [
            f"  - name: colloquy-{name}",
            f"    entrypoint: flows.stages:{name}",
            f'    tags: [colloquy, "stage:{name}"]',
            "    work_pool: *here",
        ]
        yield Missing("prefect.yaml", "before `  - name: colloquy-report`", "\n".join(deployment))
    if f"tasks.{name}" not in contracted():
        yield Missing("pyproject.toml", "after `    tasks.personas`", f"    | tasks.{name}")


def entrypoints() -> set[str]:
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    return {deployment["entrypoint"] for deployment in deployments}


def contracted() -> set[str]:
    """The packages that the first import contract names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    return {name.strip() for layer in layers for name in layer.split("|")}


STAGES = pytest.mark.parametrize("stage", chain.chain(), ids=lambda stage: stage.name)


@STAGES
def test_what_other_files_have_to_say_of_a_stage_they_say(stage: Stage) -> None:
    if missing := list(missing_of(stage)):
        pytest.fail(f"stage {stage.name} is not whole; missing are\n\n" + "\n\n".join(map(str, missing)), pytrace=False)


@STAGES
def test_a_stage_is_called_what_its_package_is_and_says_in_a_line_what_it_makes(stage: Stage) -> None:
    assert stage.package == f"tasks.{stage.name}"
    assert " → " in stage.doc and stage.doc.endswith(".") and "\n" not in stage.doc
    assert stage.section.__name__ == f"{stage.name.capitalize()}Section"


@STAGES
def test_a_stage_writes_and_reads_tables_that_are_declared(stage: Stage) -> None:
    assert set(stage.writes) <= set(TABLES), "declare it in TABLES of tasks/foundation/tables/<area>.py, or as a draft"
    assert set(stage.reads) <= set(TABLES) and set(stage.reads_if_made) <= set(stage.reads)


@STAGES
def test_every_stage_has_a_flow_of_its_name_which_says_what_the_stage_does(stage: Stage) -> None:
    flow = getattr(stages, stage.name)
    assert flow is stages.FLOWS[stage.name]
    assert (flow.name, flow.description) == (stage.name, stage.doc)
    assert flow.flow_run_name == f"{{options.build}} {stage.name}"


def test_stages_run_after_those_whose_tables_they_read() -> None:
    published = (
        *("personas", "scenes", "conflicts", "dialogues", "voting", "curation", "chatseeds"),
        *("awareness", "interaction", "conversation", "judging", "metrics"),
    )
    assert tuple(name for name in chain.names() if name in published) == published
    for stage in chain.chain():
        before = chain.names()[: chain.names().index(stage.name)]
        assert set(chain.upstream(stage.name)) <= set(before)


def test_an_evaluation_runs_what_has_targets_and_what_reads_theirs() -> None:
    assert chain.evaluation() == ("awareness", "interaction", "conversation", "judging", "metrics")
    assert chain.evaluation("demo") == ("awareness", "interaction", "judging", "metrics")
    assert chain.evaluation("eyt") == ("conversation", "judging", "metrics")


def test_every_deployment_that_is_of_a_stage_is_of_one_that_exists() -> None:
    of_stages = {entrypoint.partition(":")[2] for entrypoint in entrypoints() if entrypoint.startswith("flows.stages:")}
    assert of_stages == set(chain.names())
