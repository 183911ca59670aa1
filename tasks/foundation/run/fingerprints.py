"""What a stage's rows depend on, hashed: when nothing of it changed, there is nothing to do.

The code counts as its syntax tree: a comment, a docstring or the layout changes nothing, a helper three
imports away changes everything it should.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tasks.foundation.errors import SourceError
from tasks.foundation.ids import digest
from tasks.foundation.run.syntax import syntax_store
from tasks.foundation.store.layout import FINGERPRINT_DIGITS

_HASHED_AS_TREE = "tasks."

CHANGES_NO_ROW = "estimate.py"
"""The module of a stage's package that says what a run will ask; the run itself never looks at it."""


def combine(components: Mapping[str, str]) -> str:
    """The fingerprint of a stage run from its named components (16 hex digits)."""
    return digest(dict(components))[:FINGERPRINT_DIGITS]


def changed(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Names of the components that differ: why a stage is stale."""
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))


def file_identity(path: Path) -> str:
    """sha256 of a file's content; SourceError when it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SourceError(f"input file {path} cannot be read: {error.strerror or error}") from None


def files_identity(files: Sequence[Any]) -> str:
    """Hash over files (paths: by content) and other identities (strings: hub dataset and revision)."""
    return digest([file_identity(file) if isinstance(file, Path) else str(file) for file in files])


def code_identity(package: str) -> str:
    """Hash over the syntax trees of a stage's package and of every module of ours it imports."""
    modules = _reachable(_modules_of(package))
    identity = digest({name: _tree_hash(path) for name, path in sorted(modules.items())})
    syntax_store().save()
    return identity


def _modules_of(package: str) -> dict[str, Path]:
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations is not None, package
    folder = Path(next(iter(spec.submodule_search_locations)))
    found = {}
    for path in folder.rglob("*.py"):
        if path.name == CHANGES_NO_ROW:
            continue
        name = ".".join([package, *path.relative_to(folder).with_suffix("").parts])
        found[name.removesuffix(".__init__")] = path
    return found


def _reachable(start: Mapping[str, Path]) -> dict[str, Path]:
    found: dict[str, Path] = dict(start)
    waiting = list(start)
    while waiting:
        for name in _imports(found[waiting.pop()]):
            path = _module_file(name)
            if path is not None and name not in found:
                found[name] = path
                waiting.append(name)
    return found


@cache
def _imports(path: Path) -> tuple[str, ...]:
    imports, _ = syntax_store().of(path)
    return tuple(name for name in imports if name.startswith(_HASHED_AS_TREE))


@cache
def _module_file(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


@cache
def _tree_hash(path: Path) -> str:
    _, tree = syntax_store().of(path)
    return tree


def libraries(names: Iterable[str]) -> dict[str, str]:
    """Installed versions, for the commit record."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in names:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions
