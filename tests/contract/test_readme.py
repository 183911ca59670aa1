"""What the README and the command's page say can be typed, and what they point to is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import get_args

import pytest
import typer

from flows import chain
from flows.chain.options import RebuildOptions
from flows.cli.main import LazyCommand, app
from tasks.foundation import ROOT
from tasks.foundation.settings import profile_names
from tasks.foundation.settings.sections import PersonaSource, SceneSource

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    path: (ROOT / path).read_text(encoding="utf-8")
    for path in ("README.md", "docs/commands.md", "docs/own-data.md", "docs/viewer.md")
}
LINES = sorted(
    {line.removeprefix("$ ") for text in PAGES.values() for line in text.splitlines() if line.startswith("$ ")}
    | {found for found in re.findall(r"`(colloquy [a-z][^`]*)`", README) if "…" not in found}
)


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("colloquy")])
def test_every_command_shown_is_one_that_the_command_line_takes(line: str) -> None:
    group = typer.main.get_command(app)
    words = shlex.split(line.partition(" > ")[0])[1:]
    while isinstance(getattr(group, "commands", None), dict):
        assert words[0] in group.commands, f"{words[0]} is no command"
        command = group.commands[words[0]]
        group, words = command.load() if isinstance(command, LazyCommand) else command, words[1:]
        if not words:
            break
    if "{" not in line:
        placeholders = {"DIR": "a-folder", "BUILD": "a-build"}
        group.make_context(line, [placeholders.get(word, word) for word in words])


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("prefect deployment run")])
def test_every_deployment_shown_takes_the_options_shown(line: str) -> None:
    words = shlex.split(line)
    assert words[3] == "rebuild/colloquy-rebuild"
    name, _, value = words[words.index("--param") + 1].partition("=")
    assert name == "options"
    RebuildOptions.model_validate_json(value)


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("make")])
def test_every_make_target_shown_exists(line: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{line.split()[1]}:", makefile, flags=re.M)


@pytest.mark.parametrize(("page", "text"), PAGES.items())
def test_every_link_leads_somewhere(page: str, text: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / Path(page).parent / target).exists(), f"{page} links to {target}"


def test_the_readme_names_every_profile_and_every_reader() -> None:
    for profile in profile_names():
        assert f"| `{profile}` |" in README
    fields = [source.model_fields["reader"] for source in (PersonaSource, SceneSource)]
    for reader in (name for field in fields for name in get_args(field.annotation)):
        assert f"`{reader}`" in README


def test_the_picture_of_the_chain_names_every_stage() -> None:
    picture = README.split("```")[1]
    assert all(stage in picture for stage in chain.names())


def test_every_command_is_on_the_commands_page() -> None:
    group = typer.main.get_command(app)
    assert all(f"`colloquy {name}" in PAGES["docs/commands.md"] for name in group.commands)  # type: ignore[attr-defined]
