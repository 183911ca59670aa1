"""Which benchmark a build is made for, and what the page leaves out then: parts that only the other one fills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tasks.foundation.store.commits import Commit

Half = Literal["demo", "eyt"]

ONLY_OF: dict[Half, frozenset[str]] = {
    "demo": frozenset({"characters", "voting", "demo", "interactions", "dialogues", "predictions"}),
    "eyt": frozenset({"eyt", "simulator", "conversations"}),
}
"""Anchors of sections and transcripts that hold nothing of the other benchmark."""


def made_for(commits: Mapping[str, Commit]) -> Half | None:
    """The one benchmark that all commits were made for (run.benchmark); None for both, or where they do not say."""
    found = {commit.record.get("settings", {}).get("run", {}).get("benchmark") for commit in commits.values()}
    if found == {"demo"}:
        return "demo"
    return "eyt" if found == {"eyt"} else None


def belongs(anchor: str, half: Half | None, *, holds_rows: bool) -> bool:
    """Whether a part of the page stays: all but what is empty and the other benchmark's alone."""
    return holds_rows or half is None or anchor not in ONLY_OF[other_than(half)]


def other_than(half: Half) -> Half:
    return "eyt" if half == "demo" else "demo"
