"""Taking away what nobody needs: one member (a target, a judge) of a build, parts that no commit names, whole builds.

The last two first look, under the locks of all stage runs of a build, so that nothing of a running stage is touched; a
build of which a commit cannot be read is left alone, since nobody knows what that names.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tasks.foundation.errors import BuildBusy, StoreError
from tasks.foundation.store.commits import Commit, builds, commits_of, pinned_build, remember
from tasks.foundation.store.files import explain_write_errors, remove_file
from tasks.foundation.store.layout import Layout, is_build_name
from tasks.foundation.store.locks import lock
from tasks.foundation.store.views import rebuild_views


def drop_member(layout: Layout, build: str, member: str, stages: Sequence[str]) -> list[Commit]:
    """Removes the member's commits of these stages and returns them; the views no longer show their rows.

    Its parts stay, so a run of the same stage finds them done. Raises StoreError when the build does not exist or has
    no such member, BuildBusy while one of the stages runs.
    """
    commits = commits_of(layout, build)
    if not commits:
        raise StoreError(f"build {build!r} does not exist; expected one of: {', '.join(builds(layout)) or 'none yet'}")
    fanned = [commit for commit in commits.values() if commit.stage in stages]
    chosen = [commit for commit in fanned if commit.member == member]
    if not chosen:
        known = ", ".join(sorted({commit.member or "" for commit in fanned})) or "none yet"
        raise StoreError(f"build {build!r} has nothing of {member!r} in {', '.join(stages)}; expected one of: {known}")
    with ExitStack() as held:
        for commit in chosen:
            held.enter_context(lock(layout.lock(build, commit.run), f"stage {commit.run} of build {build}", 0))
        for commit in chosen:
            remember(layout, build, commit.row("dropped"))
            remove_file(layout.commit(build, commit.run))
        rebuild_views(layout)
    return chosen


@dataclass(frozen=True, slots=True)
class Swept:
    """What there is to take away of a build, or was. `kept_because` says why it was left alone; empty: it was not."""

    build: str
    files: int
    bytes: int
    kept_because: str = ""


def sweep(layout: Layout, *, delete: bool) -> Iterator[Swept]:
    """Parts that no commit names, by build; with `delete` they go, and shard plans that no commit rests on with them.

    Those of a run that was stopped are among them: the same command would go on with them, and without them it works
    its rows again from the reply cache. Files are listed before the locks are taken, so what a run makes from then on
    is not among them. StoreError when a file cannot be removed.
    """
    for build in _stored_builds(layout):
        parts, plans = list(_parts(layout, build)), _plans(layout, build)
        try:
            with _at_rest(layout, build):
                commits = commits_of(layout, build)
                named, rested_on = _named(commits), _rested_on(layout, commits)
                loose = [path for path in parts if layout.relative(path) not in named]
                swept = Swept(build, len(loose), _size(loose))
                if delete:
                    _remove(loose)
                    _remove([path for path in plans if path not in rested_on])
        except (BuildBusy, StoreError) as error:
            swept = Swept(build, len(parts), _size(parts), str(error))
        if swept.files:
            yield swept


def remove_build(layout: Layout, build: str, *, delete: bool) -> Swept:
    """A build with all that is stored of it but its replies, which other builds may rest on too; gone with `delete`.

    Raises StoreError for one that does not exist or is pinned, BuildBusy while a stage of it runs.
    """
    if build not in {*builds(layout), *_stored_builds(layout)}:
        raise StoreError(f"build {build!r} does not exist; expected one of: {', '.join(builds(layout)) or 'none yet'}")
    if build == pinned_build(layout):
        raise StoreError(f"build {build!r} is pinned: `colloquy use` another one first, or `colloquy use --newest`")
    with _at_rest(layout, build):
        folders = [layout.builds / build, *_folders(layout, build), layout.reports / build]
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        swept = Swept(build, len(files), _size(files))
        if delete:
            for folder in folders:  # the commits first: what is left of a removal that was cut short is loose parts
                with explain_write_errors(folder):
                    _remove_folder(folder)
    if delete:
        rebuild_views(layout)
    return swept


@contextmanager
def _at_rest(layout: Layout, build: str) -> Iterator[None]:
    """The locks of all stage runs that the build ever had; BuildBusy when one of them is under way."""
    with ExitStack() as held:
        for path in sorted((layout.builds / build).glob(".*.lock")):
            run = path.name.removeprefix(".").removesuffix(".lock")
            held.enter_context(lock(path, f"stage {run} of build {build}", 0))
        yield


def _stored_builds(layout: Layout) -> list[str]:
    """Builds of which there are parts, whether or not they have a commit."""
    named = {folder.name.removeprefix("build=") for folder in (layout.root / "store").glob("*/build=*")}
    return sorted(filter(is_build_name, named))


def _folders(layout: Layout, build: str) -> list[Path]:
    return sorted((layout.root / "store").glob(f"*/build={build}"))


def _parts(layout: Layout, build: str) -> Iterator[Path]:
    """What lies in the folders of a build; links are nothing of ours."""
    for folder in _folders(layout, build):
        yield from (path for path in folder.rglob("*.parquet") if path.is_file() and not path.is_symlink())


def _named(commits: dict[str, Commit]) -> set[str]:
    tables = (parts for commit in commits.values() for parts in (*commit.tables.values(), *commit.drafts.values()))
    return {part.path for parts in tables for part in parts}


def _plans(layout: Layout, build: str) -> list[Path]:
    return sorted((layout.builds / build / ".plans").glob("*.json"))


def _rested_on(layout: Layout, commits: dict[str, Commit]) -> set[Path]:
    """Shard plans that commits were made by."""
    return {
        layout.plan(commit.build, run, commit.fingerprint, revision)
        for run, commit in commits.items()
        for revision in (commit.revision, commit.record.get("plan_revision", commit.revision))
    }


def _size(files: list[Path]) -> int:
    return sum(path.stat().st_size for path in files if path.exists())


def _remove(files: list[Path]) -> None:
    for path in files:
        with explain_write_errors(path):
            path.unlink(missing_ok=True)
    for folder in {path.parent for path in files}:
        with suppress(OSError):  # it holds other files
            folder.rmdir()


def _remove_folder(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
