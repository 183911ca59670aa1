"""The same deduplication by other means: unit vectors in order of the walk in, who is kept (bool) out."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import platformdirs

CPUINFO = Path("/proc/cpuinfo")
if CPUINFO.exists() and "avx512f" in CPUINFO.read_text(encoding="ascii", errors="replace"):
    # The OpenBLAS in faiss's wheel takes slow kernels on newer processors: with these its products are 3 times quicker.
    os.environ.setdefault("OPENBLAS_CORETYPE", "SKYLAKEX")
BLOCK = 512
SEMHASH = Path(platformdirs.user_cache_dir("colloquy")) / "bench" / "semhash" / "bin" / "python"


def brute_force(vectors: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """From every cosine in float64: the place of the kept one that each is closest to, and the cosine (-1 and NaN
    for those kept)."""
    exact = vectors.astype(np.float64)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    kept: list[int] = []
    closest, cosine = np.full(len(exact), -1), np.full(len(exact), np.nan)
    for start in range(0, len(exact), BLOCK):
        block = exact[start : start + BLOCK]
        n_before = len(kept)
        before, within = block @ exact[kept].T, block @ block.T
        for row in range(len(block)):
            here = [place - start for place in kept[n_before:]]
            cosines = np.concatenate([before[row], within[row, here]])
            if len(cosines) and cosines.max() >= threshold:
                closest[start + row], cosine[start + row] = kept[int(cosines.argmax())], cosines.max()
            else:
                kept.append(start + row)
    return closest, cosine


def by_paraphrase_mining(vectors: np.ndarray, threshold: float) -> np.ndarray:
    """sentence-transformers' mining with its defaults (at most 500,000 pairs), then greedily."""
    import torch
    from sentence_transformers import util

    pairs = util.paraphrase_mining_embeddings(torch.from_numpy(vectors), score_function=util.dot_score)
    near = np.array([(a, b) for cosine, a, b in pairs if cosine >= threshold], np.int64).reshape(-1, 2)
    return _greedy(len(vectors), near)


def by_flat_index(vectors: np.ndarray, threshold: float) -> np.ndarray:
    """faiss, exact: range search over all vectors, then greedily."""
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return _greedy(len(vectors), np.concatenate(list(_ranges(index, vectors, threshold))))


def by_inverted_lists(vectors: np.ndarray, threshold: float, lists: int = 4096, probes: int = 4) -> np.ndarray:
    """faiss, approximate: only the nearest of its lists are searched; then greedily. Trained on a quarter of the
    vectors (61 a list of a million, where faiss recommends 39 at least): on all of them training alone takes longer
    than everything else."""
    import faiss

    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(vectors.shape[1]), vectors.shape[1], lists, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors[::4])
    index.add(vectors)
    index.nprobe = probes
    return _greedy(len(vectors), np.concatenate(list(_ranges(index, vectors, threshold))))


def _ranges(index: object, vectors: np.ndarray, threshold: float) -> Iterator[np.ndarray]:
    for start in range(0, len(vectors), 8192):
        limits, _, found = index.range_search(vectors[start : start + 8192], threshold)  # type: ignore[attr-defined]
        rows = start + np.repeat(np.arange(len(limits) - 1), np.diff(limits.astype(np.int64)))
        yield np.stack([rows, found], axis=1)[rows > found]


def _greedy(n: int, near: np.ndarray) -> np.ndarray:
    """Whether each place is kept, walking near pairs in order."""
    later, earlier = near.max(axis=1), near.min(axis=1)
    kept = np.ones(n, bool)
    for place, other in sorted(set(zip(later.tolist(), earlier.tolist(), strict=True))):
        if kept[other] and place != other:
            kept[place] = False
    return kept


def by_semhash(texts: list[str], vectors: np.ndarray, threshold: float, folder: Path) -> tuple[np.ndarray, float]:
    """Which are kept, and the seconds it took without its imports and without reading the vectors."""
    np.save(folder / "vectors.npy", vectors)
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    subprocess.run([SEMHASH, Path(__file__).with_name("with_semhash.py"), folder, str(threshold)], check=True)
    answer = json.loads((folder / "kept.json").read_text(encoding="utf-8"))
    kept = np.zeros(len(texts), bool)
    kept[answer["kept"]] = True
    return kept, answer["seconds"]
