"""Word pieces to unit vectors: the encoder's own modules, in batches of about equally many pieces each.

A batch costs what its longest row costs, for every row. So rows are sorted by their pieces (not by characters, of
which a piece has four in English and one in Chinese) and cut where a batch would pass a fixed number of pieces.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Precision = Literal["float32", "bfloat16"]
PIECES_AT_ONCE = 4096
"""Word pieces of a batch, padding among them."""

log = logging.getLogger(__name__)


def batches(lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """Positions in batches, longest first, each of at most `budget` pieces when filled up (or of one position).

    >>> [batch.tolist() for batch in batches(np.array([3, 9, 4, 4]), budget=10)]
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
        self._told = False

    def vectors(
        self, rows: Sequence[np.ndarray], precision: Precision = "float32", budget: int = PIECES_AT_ONCE
    ) -> np.ndarray:
        """Unit float32 [n, d] of rows of ids. Under `bfloat16` products are made in it, sums in float32."""
        import torch

        if precision == "bfloat16":
            self._tell_if_slow()
        lengths = np.array([len(row) for row in rows], np.int64)
        found: np.ndarray | None = None
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            for batch in batches(lengths, budget):
                vectors = self._batch([rows[position] for position in batch])
                if found is None:
                    found = np.empty((len(rows), vectors.shape[1]), np.float32)
                found[batch] = vectors
        assert found is not None, "no rows"
        return found

    def _batch(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        import torch

        ids = np.full((len(rows), max(len(row) for row in rows)), self._padding, np.int64)
        mask = np.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
            mask[place, : len(row)] = 1
        made = self._model({"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)})
        vectors = torch.nn.functional.normalize(made["sentence_embedding"].float(), p=2, dim=1)
        found: np.ndarray = vectors.numpy()
        return found

    def _tell_if_slow(self) -> None:
        import torch

        if not self._told and not torch.cpu._is_avx512_bf16_supported():
            log.warning("encoder.precision bfloat16: this CPU has no instructions for it, float32 may be faster")
        self._told = True
