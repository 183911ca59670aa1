"""Which commit of a hub dataset a build reads.

A branch moves. It is looked up when a build first needs it, and what it stood for is written down beside the
build's commits, so that every later run of the build reads the same rows, with or without the hub.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from tasks.foundation.settings.sections import Source
from tasks.foundation.sources.folders import find_files
from tasks.foundation.sources.hub import commit_of
from tasks.foundation.store.files import write_text
from tasks.foundation.store.layout import Layout

_COMMIT = re.compile(r"[0-9a-f]{40}")
AnySource = TypeVar("AnySource", bound=Source)


@dataclass(frozen=True, slots=True)
class Revisions:
    """The commits that one build reads; `folder` holds a file for each branch that was looked up."""

    folder: Path
    scratch: Path

    @staticmethod
    def of(layout: Layout, build: str) -> Revisions:
        return Revisions(layout.revisions(build), layout.scratch)

    def known(self, source: Source) -> str | None:
        """The commit of a hub source; None for a branch that this build has not needed yet."""
        if _COMMIT.fullmatch(source.revision or ""):
            return source.revision
        place = self._place(source)
        return place.read_text(encoding="utf-8") if place.exists() else None

    def pinned(self, source: AnySource) -> AnySource:
        """The source at its commit, looked up and written down where it was not known; a local one as it is.

        Raises SourceError when the hub has to be asked and cannot be.
        """
        if source.hub is None:
            return source
        commit = self.known(source)
        if commit is None:
            commit = commit_of(source)
            write_text(self._place(source), self.scratch, commit)
        return source.model_copy(update={"revision": commit})

    def identities(self, sources: Sequence[Source]) -> list[Path | str]:
        """What a run depends on: local files, by content; datasets at their commits; a missing file by its name."""
        return [identity for source in sources for identity in self._identities(source)]

    def recorded(self, sources: Sequence[Source]) -> list[dict[str, Any]]:
        """What a commit says of its sources: name, place, revision as asked for, commit, split and licence."""
        return [self._recorded(source) for source in sources]

    def _identities(self, source: Source) -> list[Path | str]:
        if source.file is None:
            return [f"hub {source.hub}@{self.known(source) or source.revision} {source.split or ''}"]
        if not source.file.exists():
            return [f"missing {source.path}"]
        return [*find_files(source.file, source.split)]

    def _recorded(self, source: Source) -> dict[str, Any]:
        said: dict[str, Any] = {"name": source.name, "licence": source.licence}
        if source.hub is None:
            return said | {"path": source.path, "split": source.split}
        return said | {
            "hub": source.hub,
            "revision": source.revision,
            "commit": self.known(source),
            "split": source.split,
        }

    def _place(self, source: Source) -> Path:
        return self.folder / quote(f"{source.hub}@{source.revision}", safe="")
