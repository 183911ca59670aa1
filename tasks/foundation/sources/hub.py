"""Rows of hub datasets, streamed at a pinned revision, and single files of them.

Whether the hub can be reached is tried first (3 s), since the hub library takes half a minute to give up.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from tasks.foundation.errors import SourceError
from tasks.foundation.settings import Source
from tasks.foundation.sources.rows import SourceRow, plain

REACH_SECONDS = 3.0
DEFAULT_SPLIT = "train"


def read_dataset(source: Source) -> Iterator[SourceRow]:
    """Rows of a split of a hub dataset, streamed; SourceError when it cannot be reached or is not there."""
    _require_hub(source)
    import datasets

    split = source.split or DEFAULT_SPLIT
    try:
        stream = datasets.load_dataset(source.hub, revision=source.revision, split=split, streaming=True)
        for index, value in enumerate(stream):
            yield SourceRow(index, f"{source.hub}[{split}]:{index + 1}", value=plain(value))
    except (OSError, ValueError, RuntimeError) as error:
        raise SourceError(
            f"hub dataset {source.hub!r} at {source.revision}, split {split!r}, cannot be read: {error}. "
            f"{_remedy(source)}"
        ) from error


def fetch_file(source: Source, name: str) -> Path:
    """One file of a hub dataset, downloaded into the hub library's own cache."""
    _require_hub(source)
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(str(source.hub), name, repo_type="dataset", revision=source.revision))
    except (OSError, ValueError) as error:
        raise SourceError(
            f"file {name!r} of hub dataset {source.hub!r} at {source.revision} cannot be fetched: {error}. "
            f"{_remedy(source)}"
        ) from error


def hub_endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def hub_problem(endpoint: str) -> str | None:
    """Why the hub cannot be used now; None when it answers (whatever the status) within REACH_SECONDS."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        return "HF_HUB_OFFLINE is set"
    try:
        urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=REACH_SECONDS).close()
    except urllib.error.HTTPError:
        return None
    except (OSError, ValueError) as error:
        return f"{urlsplit(endpoint).hostname or endpoint} does not answer: {getattr(error, 'reason', error)}"
    return None


def _require_hub(source: Source) -> None:
    problem = hub_problem(hub_endpoint())
    if problem is not None:
        raise SourceError(f"hub dataset {source.hub!r} cannot be read: {problem}. {_remedy(source)}")


def _remedy(source: Source) -> str:
    return (
        "Without a network, use local files: on a machine that has one, run `hf download "
        f"{source.hub} --repo-type dataset --revision {source.revision} --local-dir FOLDER`, bring FOLDER here, "
        "and in the source's settings give `path: FOLDER` (a file or a folder) instead of `hub`."
    )
