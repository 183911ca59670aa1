"""Names and places in the artifacts folder."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from urllib.parse import quote

from tasks.foundation import FOLDER
from tasks.foundation.errors import ConfigError

RELEASED = "release"
"""What a build calls the pseudo-stage of an imported benchmark."""

FINGERPRINT_DIGITS = 16
"""Hex digits of a stage fingerprint (it is a folder name)."""

BUILD = "[a-z0-9][a-z0-9._-]{0,63}"
"""The shape of a build's name."""


def build_name(given: str, today: date) -> str:
    """The checked name of a build; `{date}` becomes `today` (for schedules). ConfigError if malformed."""
    name = given.replace("{date}", today.isoformat())
    if not is_build_name(name):
        raise ConfigError(
            f"build name {given!r}: expected 1 to 64 of a-z 0-9 . _ - beginning with a letter or digit "
            "(it becomes a folder name), for example 2026-12 or nightly-{date}"
        )
    return name


def is_build_name(name: str) -> bool:
    return re.fullmatch(BUILD, name) is not None


def run_name(stage: str, member: str | None) -> str:
    """What a build calls a stage's run: `scenes`, or `conversation@gpt-4o` for a member of a fan-out."""
    return stage if member is None else f"{stage}@{quote(member, safe='')}"


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths under one artifacts folder."""

    root: Path

    @staticmethod
    def default() -> Layout:
        """`COLLOQUY_ARTIFACTS`, else artifacts/ of the checkout, or of the current folder of an installed package."""
        return Layout(Path(os.environ.get("COLLOQUY_ARTIFACTS") or FOLDER / "artifacts").absolute())

    @property
    def builds(self) -> Path:
        return self.root / "builds"

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def scratch(self) -> Path:
        """For files that are not yet what they will be; same file system, so that a rename is atomic."""
        return self.root / "tmp"

    @property
    def reports(self) -> Path:
        return self.root / "reports"

    @property
    def database(self) -> Path:
        return self.root / "colloquy.duckdb"

    @property
    def views_lock(self) -> Path:
        """Held by the process that writes the database file."""
        return self.builds / ".views.lock"

    @property
    def pin(self) -> Path:
        """Holds the name of the build that schema `main` shows; absent: the newest."""
        return self.builds / "pinned"

    def commit(self, build: str, run: str) -> Path:
        """The commit record of a stage run (see `run_name`)."""
        return self.builds / build / f"{run}.json"

    def lock(self, build: str, run: str) -> Path:
        return self.builds / build / f".{run}.lock"

    def plan(self, build: str, run: str, fingerprint: str, revision: int) -> Path:
        return self.builds / build / ".plans" / f"{run}-{fingerprint}-r{revision}.json"

    def past_runs(self, build: str, run: str) -> Path:
        """Holds the last runs of a stage that failed, or whose commit was replaced (see runs)."""
        return self.builds / build / ".runs" / f"{run}.json"

    def begun(self, build: str) -> Path:
        """Holds what a build was begun with, for as long as it has no commit that says so."""
        return self.builds / build / ".begun"

    def revisions(self, build: str) -> Path:
        """Holds, for each branch of a hub dataset that the build reads, the commit it stood for (see sources)."""
        return self.builds / build / ".revisions"

    def part(self, table: str, build: str, fingerprint: str, label: str, revision: int) -> Path:
        """Where a part lies. `label` is a shard's number or the name of a step (prepare, finish)."""
        suffix = f".r{revision}" if revision else ""
        return self.root / "store" / table / f"build={build}" / fingerprint / f"part-{label}{suffix}.parquet"

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()
