"""What a folder with a sentence encoder says about it, read without loading it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks.foundation.errors import ConfigError
from tasks.foundation.ids import digest

MOST_PIECES = 256
"""Word pieces read at most, however many an encoder could: what MiniLM, the papers' encoder, reads."""
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
CONFIGS = ("config.json", "tokenizer.json", "modules.json", "sentence_bert_config.json")


def identity(folder: Path) -> str:
    """Hash over weights, tokenizer and configuration of all modules: with the pieces read, what decides a vector."""
    files = {file.relative_to(folder).as_posix(): _file_digest(file) for file in _deciding(folder)}
    return digest(pieces_read(folder), files)


def pieces_read(folder: Path) -> int:
    """Word pieces the encoder reads, special ones among them; what comes after is not seen."""
    found = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    return min(int(found or MOST_PIECES), MOST_PIECES)


def dimensions(folder: Path) -> int:
    """The length of a vector. ConfigError for a folder that does not say it."""
    found = _json(folder / "config.json").get("hidden_size")
    for module in _modules(folder):
        found = _json(folder / module / "config.json").get("out_features", found)
    if not isinstance(found, int):
        raise ConfigError(
            f"Expected a sentence-transformers encoder in {folder}: its config.json names no hidden_size. "
            "Give the folder that holds modules.json, config.json, tokenizer.json and the weights."
        )
    return found


def _deciding(folder: Path) -> Iterator[Path]:
    for place in (folder, *(folder / module for module in _modules(folder))):
        yield from (file for name in CONFIGS if (file := place / name).is_file())
        yield from (file for pattern in WEIGHTS for file in sorted(place.glob(pattern)))


def _modules(folder: Path) -> list[str]:
    """Folders of the modules after the transformer, in order."""
    found = _json(folder / "modules.json", [])
    return [module["path"] for module in found if module.get("path")]


def _json(path: Path, missing: Any = None) -> Any:
    if not path.is_file():
        return {} if missing is None else missing
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise ConfigError(f"Expected JSON in {path}; the encoder's folder is damaged, get it again.") from None


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
