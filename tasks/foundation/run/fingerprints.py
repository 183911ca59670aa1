"""What a stage's rows depend on, hashed: when nothing of it changed, there is nothing to do.

The code counts as its syntax tree: a comment, a docstring or the layout changes nothing, a helper three
imports away changes everything it should. Parsing takes milliseconds a module and a stage depends on a hundred of them,
so what a tree says is kept in the user's cache folder by the hash of the module's text; that file may be deleted at any
time.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import platformdirs

from tasks.foundation.errors import SourceError
from tasks.foundation.ids import digest
from tasks.foundation.store.layout import FINGERPRINT_DIGITS

_HASHED_AS_TREE = "tasks."


KEPT_TREES = f"syntax-{sys.version_info[0]}.{sys.version_info[1]}-1.json"
"""The tree differs between versions of Python; the last number rises when what is found changes."""

MOST_KEPT_TREES = 5000


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
    return {name: _installed(name) for name in names}


@cache
def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


class SyntaxStore:
    """Imports and tree hash of modules by the sha256 of their text."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / KEPT_TREES
        self._known: dict[str, tuple[list[str], str]] | None = None
        self._grown = False

    def of(self, path: Path) -> tuple[list[str], str]:
        """Names that the module imports (sorted, all of them), and the hash of its tree."""
        text = path.read_bytes()
        key = hashlib.sha256(text).hexdigest()
        known = self._loaded()
        if key not in known:
            known[key] = _parsed(text)
            self._grown = True
        return known[key]

    def save(self) -> None:
        """Keeps what is new. A folder that cannot be written costs time later and nothing else."""
        if not self._grown or self._known is None:
            return
        kept = dict(list(self._known.items())[-MOST_KEPT_TREES:])
        temporary = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(kept), encoding="utf-8")
            temporary.replace(self._file)
        self._grown = False

    def _loaded(self) -> dict[str, tuple[list[str], str]]:
        if self._known is None:
            try:
                found = json.loads(self._file.read_text(encoding="utf-8"))
                self._known = {str(key): (list(imports), str(tree)) for key, (imports, tree) in found.items()}
            except (OSError, ValueError, TypeError, AttributeError):
                self._known = {}
        return self._known


@cache
def syntax_store() -> SyntaxStore:
    """The store of this process, in the user's cache folder."""
    return SyntaxStore(Path(platformdirs.user_cache_dir("colloquy")))


def _parsed(text: bytes) -> tuple[list[str], str]:
    tree = ast.parse(text)
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_text(statement)]
    return sorted(names), hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
