"""What a wheel holds is enough: installed elsewhere, it makes a whole build in the current folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tasks.foundation import ROOT
from tasks.foundation.store.commits import commits_of
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import open_views

pytestmark = pytest.mark.flow

SOURCES = ("configs", "docs", "flows", "prompts", "sql", "tasks")
BUILD_WHEEL = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what a wheel of this checkout installs."""
    source, wheels, site = (tmp_path_factory.mktemp(name) for name in ("source", "wheels", "site"))
    for name in SOURCES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (*ROOT.glob("*.toml"), *ROOT.glob("*.py"), *ROOT.glob("*.yaml"), ROOT / "README.md", ROOT / "LICENSE"):
        shutil.copy(file, source)
    done = subprocess.run(
        [sys.executable, "-c", BUILD_WHEEL, str(wheels)], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    return site


def colloquy(installed: Path, folder: Path, *words: str) -> str:
    """What the installed command says, started in a folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COLLOQUY_", "PREFECT_"))}
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli.main", *words],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tour_of_an_installed_wheel_makes_a_whole_build_in_the_current_folder(
    installed: Path, tmp_path: Path
) -> None:
    said = colloquy(installed, tmp_path, "tour")
    layout = Layout(tmp_path / "artifacts")
    assert str(layout.root) in said
    assert {path.name for path in tmp_path.iterdir()} == {"artifacts", ".prefect"}
    assert {commit.stage for commit in commits_of(layout, "tour").values()} >= {"voting", "judging", "metrics"}
    with open_views(layout, "tour") as connection:
        spoken = connection.execute(
            "select language, text from dialogues join utterances using (dialogue_id)"
        ).fetchall()
        asked = {alias for (alias,) in connection.execute("select distinct alias from llm_calls").fetchall()}
    assert {language for language, _ in spoken} == {"en", "zh"}
    assert all(text in said for _, text in spoken)
    assert asked == {"written-a", "written-b", "written-c"}
    assert " votes [" in said
    assert "a judgement of conversation_" in said
    assert "scripted tour" in said


def test_an_installed_wheel_takes_a_path_of_the_settings_from_the_current_folder_first(
    installed: Path, tmp_path: Path
) -> None:
    code = "from tasks.foundation import locate; print(locate('configs/base.yaml')); print(locate('no/such'))"
    run = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(installed)}

    def located() -> list[str]:
        return subprocess.run(
            run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout.split()

    assert located() == [
        str(installed / "tasks" / "foundation" / "packed" / "configs" / "base.yaml"),
        str(tmp_path / "no" / "such"),
    ]
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "base.yaml").touch()
    assert located()[0] == str(tmp_path / "configs" / "base.yaml")
