"""The page about the house names every room there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from tasks.foundation import ROOT

PAGE = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")


def rooms_in(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.glob("*/__init__.py")}


def picture() -> set[str]:
    """The words of the picture."""
    return set(re.findall(r"[a-z]+", PAGE.partition("```text")[2].partition("```")[0]))


def test_the_picture_has_every_room() -> None:
    foundation = rooms_in(ROOT / "tasks" / "foundation")
    assert len(foundation) <= 10
    missing = (foundation | rooms_in(ROOT / "tasks") | rooms_in(ROOT / "flows")) - {"foundation"} - picture()
    assert not missing
    loose = {path.stem for path in (ROOT / "tasks" / "foundation").glob("*.py")} - {"__init__"}
    assert loose == {"errors", "ids", "stage"}


def test_every_module_the_page_names_is_there() -> None:
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)+)(?:\.[a-z_]+)?`", PAGE))
    folders = [ROOT, ROOT / "tasks", ROOT / "tasks" / "foundation"]
    assert named
    for name in named:
        assert any(list(folder.glob(f"{name}.*")) or (folder / name).is_dir() for folder in folders), name
