"""Corpora to deduplicate: vectors with the spectrum of embedded personas, and personas as text.

A tenth are copies of others, from almost equal to just beyond the usual threshold. Everything follows from
the seed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml

DIMENSIONS = 384
CHUNK = 50_000
"""Rows made at once; copies are of rows of the same chunk."""
COPIES = 0.1
COMMON = 0.33
"""Cosine of two embedded personas on average (0.32 and 0.44 in the two sources)."""


def like_sentences(n: int, seed: int = 0, out: np.ndarray | None = None) -> np.ndarray:
    """Unit float32 [n, 384]: a common direction, and variances that fall as those of sentence embeddings do, so
    that unrelated rows have cosines of 0.33 ± 0.07."""
    rows = np.empty((n, DIMENSIONS), np.float32) if out is None else out
    random = np.random.default_rng(seed)
    turn = np.linalg.qr(random.standard_normal((DIMENSIONS, DIMENSIONS)))[0].astype(np.float32)
    variances = (np.arange(DIMENSIONS) + 5.0) ** -0.9
    scale = np.sqrt(variances / variances.sum() * (1 - COMMON)).astype(np.float32)
    for start in range(0, n, CHUNK):
        some = random.standard_normal((min(CHUNK, n - start), DIMENSIONS), np.float32) * scale
        some[:, -1] += np.sqrt(COMMON)
        some = _unit(some)
        copies = random.permutation(len(some))[: round(COPIES * len(some))]
        apart = _unit(random.standard_normal((len(copies), DIMENSIONS), np.float32))
        apart *= random.uniform(0.05, 0.75, (len(copies), 1)).astype(np.float32)
        some[copies] = some[random.integers(0, len(some), len(copies))] + apart
        rows[start : start + len(some)] = _unit(some @ turn)
    return rows


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


WORDS: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("persona_words.yaml").read_text(encoding="utf-8"))
SWAPS = (("speaks", "talks"), ("worries about", "is troubled by"), ("In spare hours", "In free time"), ("At ", "Aged "))


def personas(n: int, seed: int = 0) -> tuple[list[str], list[tuple[int, int]]]:
    """Descriptions of some sentences; and as pairs the tenth that say what another says in hardly other words."""
    random = np.random.default_rng(seed)

    def one(kind: str) -> str:
        return WORDS[kind][int(random.integers(len(WORDS[kind])))]

    texts: list[str] = []
    planted: list[tuple[int, int]] = []
    for number in range(n):
        if texts and random.random() < COPIES:
            original = int(random.integers(len(texts)))
            text = texts[original]
            for old, new in SWAPS:
                text = text.replace(old, new) if random.random() < 0.5 else text
            planted.append((original, number))
            texts.append(text)
            continue
        texts.append(
            f"At {random.integers(18, 90)}, this {one('work')} from {one('places')} {one('ways')}. In spare hours she "
            f"{one('loves')} and {one('loves')}. Before, she was a {one('work')} in {one('places')}, and worries about "
            f"{one('worries')} and {one('worries')}."
        )
    return texts, planted
