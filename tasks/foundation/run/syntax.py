"""What the syntax tree of a module says: which modules it imports, and its hash without comments and docstrings.

Parsing takes milliseconds a module and a stage depends on a hundred of them, so what was found is kept in the
user's cache folder by the hash of the module's text. The file may be deleted at any time.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import sys
from functools import cache
from pathlib import Path

import platformdirs

KEPT = f"syntax-{sys.version_info[0]}.{sys.version_info[1]}-1.json"
"""The tree differs between versions of Python; the last number rises when what is found changes."""

MOST_KEPT = 5000


class SyntaxStore:
    """Imports and tree hash of modules by the sha256 of their text."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / KEPT
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
        kept = dict(list(self._known.items())[-MOST_KEPT:])
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
