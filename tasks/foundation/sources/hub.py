"""Rows of hub datasets and of single files of them, streamed at one commit; nothing is kept on disk but which commit.

A branch moves. It is looked up when a build first needs it, and what it stood for is written down beside the build's
commits, so that every later run of the build reads the same rows, with or without the hub. Whether the hub can be
reached is tried first (a few seconds), since the hub library takes half a minute to give up.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import pyarrow as pa

from tasks.foundation.errors import SourceError
from tasks.foundation.settings.sections import Source
from tasks.foundation.sources.files import find_files, matching, read_jsonl
from tasks.foundation.sources.formats import read_batches
from tasks.foundation.sources.rows import SourceRow
from tasks.foundation.store.files import write_text
from tasks.foundation.store.layout import Layout

REACH_SECONDS = 3.0
"""For the hub's first answer; looking up its name may take as long again."""
ASK_SECONDS = 15.0
DEFAULT_SPLIT = "train"
BATCH = 1024
"""Rows of a dataset held in memory at once."""


def ask_commit(source: Source) -> str:
    """The commit that the source's revision stands for now; SourceError when the hub does not say."""
    _require_hub(source)
    from huggingface_hub import HfApi

    with _explain_errors(source, "its commit"):
        commit = HfApi().dataset_info(str(source.hub), revision=source.revision, timeout=ASK_SECONDS).sha
    if commit is None:
        raise SourceError(f"hub dataset {source.hub!r} has no commit at {source.revision!r}. {_remedy(source)}")
    return commit


def read_dataset(source: Source, columns: Sequence[str] = ()) -> Iterator[SourceRow]:
    """Rows of a split of a hub dataset, at most `source.limit`; no more of it is fetched than they take.

    `columns` names what is needed; a dataset that has them all is read no further than that. Raises SourceError
    when the dataset is not there or the hub stops answering.
    """
    _require_hub(source)
    import datasets

    datasets.disable_progress_bars()
    split = source.split or DEFAULT_SPLIT
    with _explain_errors(source, f"split {split!r}"):
        stream = datasets.load_dataset(source.hub, revision=source.revision, split=split, streaming=True)
        if columns and set(columns) <= set(stream.column_names or ()):
            stream = stream.select_columns(list(columns))
        if source.limit is not None:
            stream = stream.take(source.limit)
        tables = stream.with_format("arrow").iter(min(BATCH, source.limit or BATCH))
        batches = (batch for table in tables for batch in table.to_batches())
        yield from read_batches(batches, f"{source.hub}[{split}]")


def read_hub_file(source: Source, name: str) -> Iterator[SourceRow]:
    """Rows of one file of JSON lines (plain or .gz) of a hub dataset, fetched as they are asked for."""
    _require_hub(source)
    from huggingface_hub import HfFileSystem

    path = f"datasets/{source.hub}@{source.revision}/{name}"
    with _explain_errors(source, f"file {name!r}"):
        hub = HfFileSystem()
        yield from read_jsonl(lambda: hub.open(path, "rb", block_size=0), f"{source.hub}/{name}", name)


def hub_endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def hub_problem(endpoint: str) -> str | None:
    """Why the hub cannot be used now; None when it answers (whatever the status) in time."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        return "HF_HUB_OFFLINE is set"
    host = urlsplit(endpoint).hostname or endpoint
    problems = [f"{host} does not answer: looking up its name takes too long"]

    def ask() -> None:
        problems[0] = _asked(endpoint, host)

    # A name server that is silent holds a look-up up for half a minute, whatever the time-out of the request.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(2 * REACH_SECONDS)
    return problems[0] or None


def _asked(endpoint: str, host: str) -> str:
    try:
        urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=REACH_SECONDS).close()
    except urllib.error.HTTPError:
        return ""
    except (OSError, ValueError) as error:
        return f"{host} does not answer: {getattr(error, 'reason', error)}"
    return ""


def _require_hub(source: Source) -> None:
    problem = hub_problem(hub_endpoint())
    if problem is not None:
        raise SourceError(f"hub dataset {source.hub!r} cannot be read: {problem}. {_remedy(source)}")


@contextlib.contextmanager
def _explain_errors(source: Source, what: str) -> Iterator[None]:
    """What the hub library raises, as a SourceError that says what was asked for and what to do."""
    import httpx

    try:
        yield
    except SourceError:
        raise
    except (OSError, ValueError, RuntimeError, httpx.HTTPError, pa.ArrowException) as error:
        said = " ".join(str(error).split())[:400]
        raise SourceError(
            f"hub dataset {source.hub!r} at {source.revision}, {what}, cannot be read: {said}. {_remedy(source)}"
        ) from error


def _remedy(source: Source) -> str:
    split = f" and `split: {source.split}`" if source.split else ""
    return (
        "Without a network, use local files: on a machine that has one, run `hf download "
        f"{source.hub} --repo-type dataset --revision {source.revision} --local-dir FOLDER`, bring FOLDER here, "
        f"and in the source's settings give `path: FOLDER`{split} (a file or a folder) instead of `hub`."
    )


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
        file = self._file_of(source)
        return file.read_text(encoding="utf-8") if file.exists() else None

    def pinned(self, source: AnySource) -> AnySource:
        """The source at its commit, looked up and written down where it was not known; a local one as it is.

        Raises SourceError when the hub has to be asked and cannot be.
        """
        if source.hub is None:
            return source
        commit = self.known(source)
        if commit is None:
            commit = ask_commit(source)
            write_text(self._file_of(source), self.scratch, commit)
        return source.model_copy(update={"revision": commit})

    def identities(self, sources: Sequence[Source]) -> list[Path | str]:
        """What a run depends on: local files, by content; datasets at their commits; a missing file by its name."""
        found: list[Path | str] = []
        for source in sources:
            if source.file is None:
                found.append(f"hub {source.hub}@{self.known(source) or source.revision} {source.split or ''}")
            elif source.file.exists() or matching(source.file):
                found += find_files(source.file, source.split)
            else:
                found.append(f"missing {source.path}")
        return found

    def describe(self, sources: Sequence[Source]) -> list[dict[str, Any]]:
        """What a commit says of its sources: name, place, revision as asked for, commit, split and licence."""
        found: list[dict[str, Any]] = []
        for source in sources:
            place = {"path": source.path}
            if source.hub is not None:
                place = {"hub": source.hub, "revision": source.revision, "commit": self.known(source)}
            found.append({"name": source.name, "licence": source.licence, **place, "split": source.split})
        return found

    def _file_of(self, source: Source) -> Path:
        return self.folder / quote(f"{source.hub}@{source.revision}", safe="")
