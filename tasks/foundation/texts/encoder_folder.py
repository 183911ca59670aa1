"""A sentence encoder in a folder: what its files say of it, its tokenizer, and its network.

A batch of the network costs what its longest row costs, for every row. So rows are sorted by their pieces (not by
characters, of which a piece has four in English and one in Chinese) and cut where a batch would pass a fixed number of
pieces.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tasks.foundation.errors import ConfigError
from tasks.foundation.ids import digest
from tasks.foundation.weights import sha256_of

if TYPE_CHECKING:
    import tokenizers
    from sentence_transformers import SentenceTransformer

MOST_PIECES = 256
"""Word pieces read at most, however many an encoder could: what MiniLM, the papers' encoder, reads."""
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
CONFIGS = ("config.json", "tokenizer.json", "modules.json", "sentence_bert_config.json")


def hash_files(folder: Path) -> str:
    """Hash over weights, tokenizer and configuration of all modules: with the pieces read, what decides a vector."""
    files = {file.relative_to(folder).as_posix(): sha256_of(file) for file in _deciding_files(folder)}
    return digest(read_piece_limit(folder), files)


def read_piece_limit(folder: Path) -> int:
    """Word pieces the encoder reads, special ones among them; what comes after is not seen."""
    found = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    return min(int(found or MOST_PIECES), MOST_PIECES)


def read_dimensions(folder: Path) -> int:
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


def _deciding_files(folder: Path) -> Iterator[Path]:
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


AT_ONCE = 1024
"""Texts given to the tokenizer at once: what it makes of them takes many times their memory."""


class Tokenizer:
    """The tokenizer of an encoder's folder; torch is not needed for it."""

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        import tokenizers

        self._tokenizer: tokenizers.Tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._before, self._after = self._find_special()

    @property
    def n_special(self) -> int:
        """Pieces put around every text, [CLS] and [SEP] for example."""
        return len(self._before) + len(self._after)

    @property
    def padding(self) -> int:
        """The id of the piece that fills up; masked, so that any would do."""
        for name in ("[PAD]", "<pad>"):
            if (found := self._tokenizer.token_to_id(name)) is not None:
                return int(found)
        return 0

    def count(self, texts: Sequence[str]) -> list[int]:
        """Pieces of each text, untruncated, without special ones."""
        return [len(encoding) for encoding in self._encodings(texts)]

    def split(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The ids (int32) of each text, untruncated, without special ones."""
        return [np.array(encoding.ids, np.int32) for encoding in self._encodings(texts)]

    def frame(self, pieces: np.ndarray) -> np.ndarray:
        """The ids with the special ones around them, as the network reads them."""
        return np.concatenate([self._before, pieces, self._after])

    def _encodings(self, texts: Sequence[str]) -> Iterator[tokenizers.Encoding]:
        for start in range(0, len(texts), AT_ONCE):
            some = [replace_surrogates(text) for text in texts[start : start + AT_ONCE]]
            yield from self._tokenizer.encode_batch_fast(some, add_special_tokens=False)

    def _find_special(self) -> tuple[np.ndarray, np.ndarray]:
        bare = self._tokenizer.encode("a", add_special_tokens=False).ids
        framed = self._tokenizer.encode("a", add_special_tokens=True).ids
        start = next((at for at in range(len(framed)) if framed[at : at + len(bare)] == bare), 0)
        return np.array(framed[:start], np.int32), np.array(framed[start + len(bare) :], np.int32)


def replace_surrogates(text: str) -> str:
    """The text with U+FFFD for every lone surrogate, which no tokenizer takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


Precision = Literal["float32", "bfloat16"]
PIECES_AT_ONCE = 4096
"""Word pieces of a batch, padding among them."""

log = logging.getLogger(__name__)


def make_batches(lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """Rows in batches, longest first, each of at most `budget` pieces when filled up (or of one row).

    >>> [batch.tolist() for batch in make_batches(np.array([3, 9, 4, 4]), budget=10)]
    [[1], [2, 3], [0]]
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, int(lengths[order[start]])))
        yield order[start : start + size]
        start += size


class Network:
    """The modules of an encoder's folder (transformer, pooling, what else it lists) on CPU; loaded from disk only."""

    def __init__(self, folder: Path, pieces_read: int, threads: int, padding: int) -> None:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()
        torch.set_num_threads(threads)
        # local_files_only and not HF_HUB_OFFLINE: the hub library reads that variable once for the whole process,
        # which would shut the readers of hub datasets out as well.
        self._model: SentenceTransformer = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        self._model.max_seq_length = pieces_read
        self._model.eval()
        self._padding = padding
        self._warned = False

    def vectors(
        self, rows: Sequence[np.ndarray], precision: Precision = "float32", budget: int = PIECES_AT_ONCE
    ) -> np.ndarray:
        """Unit float32 [n, d] of rows of ids. Under `bfloat16` products are made in it, sums in float32."""
        import torch

        if precision == "bfloat16":
            self._warn_if_slow()
        lengths = np.array([len(row) for row in rows], np.int64)
        found: np.ndarray | None = None
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            for batch in make_batches(lengths, budget):
                vectors = self._encode_batch([rows[row] for row in batch])
                if found is None:
                    found = np.empty((len(rows), vectors.shape[1]), np.float32)
                found[batch] = vectors
        assert found is not None, "no rows"
        return found

    def _encode_batch(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        import torch

        ids = np.full((len(rows), max(len(row) for row in rows)), self._padding, np.int64)
        mask = np.zeros_like(ids)
        for row, pieces in enumerate(rows):
            ids[row, : len(pieces)] = pieces
            mask[row, : len(pieces)] = 1
        made = self._model({"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)})
        vectors = torch.nn.functional.normalize(made["sentence_embedding"].float(), p=2, dim=1)
        found: np.ndarray = vectors.numpy()
        return found

    def _warn_if_slow(self) -> None:
        import torch

        if not self._warned and not torch.cpu._is_avx512_bf16_supported():
            log.warning("encoder.precision bfloat16: this CPU has no instructions for it, float32 may be faster")
        self._warned = True
