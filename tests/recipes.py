r"""The recipes of CONTRIBUTING, carried out as they are written in a copy of the checkout.

The comment above a block of a recipe says where the block belongs: `# FILE` makes a file, `# FILE, at the end`,
`# FILE, after \`LINE\`` and `# FILE, before \`LINE\`` change one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tasks.foundation import ROOT

COPIED = (
    *("flows", "tasks", "tests", "configs", "prompts", "sql", "docs"),
    *("pyproject.toml", "prefect.yaml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile"),
)
BLOCK = re.compile(r"^ *```(?:python|yaml)\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"# (?P<file>\S+?)(?:, (?P<where>at the end|after|before)(?: `(?P<line>[^`\n]+)`)?)?\n")


def blocks_of(recipe: str) -> list[str]:
    """The blocks below a heading of CONTRIBUTING, in order, without their indentation."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, _, below = text.partition(f"\n## {recipe}\n")
    assert below, f"CONTRIBUTING has no recipe {recipe!r}"
    found = BLOCK.finditer(below.partition("\n## ")[0])
    return [textwrap.dedent(match["text"]) for match in found]


@dataclass
class Checkout:
    """A copy of what is in the repository, in a folder of its own; `environment` is added to that of commands."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy(source, self.folder / name)

    def write(self, block: str) -> None:
        """Put a block where its first line says that it belongs."""
        place = PLACE.match(block)
        assert place, f"the first line says no place: {block.splitlines()[0]}"
        file, text = self.folder / place["file"], block[place.end() :]
        if place["where"] is None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            return
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        if place["where"] == "at the end":
            at = len(lines)
            text = f"\n\n{text}"
        else:
            at = [line.rstrip("\n") for line in lines].index(place["line"]) + (place["where"] == "after")
        lines.insert(at, text if text.endswith("\n") else f"{text}\n")
        file.write_text("".join(lines), encoding="utf-8")

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`python` in the copy, to its end."""
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
