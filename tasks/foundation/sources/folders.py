"""Which files a local source is: the file itself, or those of a folder, of one split where a split is named."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from tasks.foundation.errors import SourceError
from tasks.foundation.settings.strict_yaml import load_yaml
from tasks.foundation.sources.local import kind_of, known_kinds

NO_DATA = ("dataset_infos.json", "dataset_info.json", "state.json")
"""Files that tools put beside data."""


def find_files(path: Path, split: str | None = None) -> list[Path]:
    """The files of `path`: itself, or those of a folder that can be read, by name.

    A folder is read as deep as it must be: its own files, or, where it has none, those of its folders. With a
    `split` they are those which the folder's README.md declares for it, as datasets of the hub do, else those
    with the split in their names (data/train-00000-of-00011.parquet). Raises SourceError when there is none,
    naming what lies near.
    """
    if path.is_file():
        kind_of(path)
        return [path]
    if not path.is_dir():
        raise SourceError(
            f"source file {path} does not exist{_near(path)}. Give an existing file in `path`, "
            "or download the data first; relative paths start at the checkout."
        )
    below = sorted(_readable(path, set()))
    if split is not None:
        return _of_split(path, split, below)
    files = [file for file in below if file.parent == path] or below
    if not files:
        raise SourceError(
            f"source folder {path} holds no file that can be read: expected {known_kinds()}, found {_listing(path)}. "
            "Put the data there or give the file itself in `path`."
        )
    return files


def _readable(folder: Path, entered: set[Path]) -> Iterator[Path]:
    """Each folder is entered once, whatever links lead to it."""
    real = folder.resolve()
    if real in entered:
        return
    entered.add(real)
    for item in folder.iterdir():
        if item.name.startswith("."):
            continue
        if item.is_dir():
            yield from _readable(item, entered)
        elif item.name not in NO_DATA and kind_of(item, strict=False):
            yield item


def _of_split(folder: Path, split: str, files: Sequence[Path]) -> list[Path]:
    patterns = _declared(folder / "README.md").get(split, [])
    named = {file for pattern in patterns for file in (folder / pattern, *folder.glob(pattern))}
    found = sorted(named.intersection(files))
    if not found:
        name = re.compile(rf"(?:^|[^a-zA-Z0-9]){re.escape(split)}(?:[^a-zA-Z0-9]|$)")
        found = [file for file in files if name.search(file.relative_to(folder).as_posix())]
    if not found:
        shown = ", ".join(file.relative_to(folder).as_posix() for file in files[:8]) or _listing(folder)
        raise SourceError(
            f"source folder {folder} holds no file of the split {split!r}: expected it declared in README.md or in a "
            f"file's name, found {shown}. Change `split`, or leave it out to read every file."
        )
    return found


def _declared(readme: Path) -> dict[str, list[str]]:
    """Patterns of files by split, as the first lines of a dataset's README.md declare them; empty without any."""
    text = readme.read_text(encoding="utf-8", errors="replace") if readme.is_file() else ""
    head = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    try:
        configs = load_yaml(head[1])["configs"] if head else []
        named = [each for each in configs if each.get("config_name") == "default"]
        entries = (named or configs)[0]["data_files"]
        pairs = entries.items() if isinstance(entries, dict) else [(each["split"], each["path"]) for each in entries]
        return {str(split): _patterns(paths) for split, paths in pairs}
    except (yaml.YAMLError, LookupError, TypeError, AttributeError):
        return {}


def _patterns(paths: Any) -> list[str]:
    return [str(path).removeprefix("./") for path in (paths if isinstance(paths, list) else [paths])]


def _near(path: Path) -> str:
    """What lies where the file was expected, near names first."""
    folder = path.parent
    if not folder.is_dir():
        return f" (nor does its folder {folder})"
    names = sorted(item.name for item in folder.iterdir() if not item.name.startswith("."))
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5)
    if near:
        return f" (did you mean {' or '.join(repr(name) for name in near)}?)"
    return f"; {folder} holds {_listing(folder)}"


def _listing(folder: Path, most: int = 8) -> str:
    names = sorted(item.name for item in folder.iterdir() if not item.name.startswith("."))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "nothing"
