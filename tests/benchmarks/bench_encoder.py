"""Encoding against sentence-transformers' own `encode`, on the same texts in the same run, with two torch threads.

COLLOQUY_BENCH_TEXTS=2000     texts of the first table, in English, Chinese and Arabic
COLLOQUY_BENCH_STORED=100000  vectors of the second table

Both wall-clock and processor seconds are shown: the former mean little on a machine that has other work.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tasks.foundation.texts.encoder import SLACK, Encoder
from tasks.foundation.texts.encoder_folder import PIECES_AT_ONCE, make_batches
from tasks.foundation.weights import missing, path_of
from tests.benchmarks.dedup_corpus import personas

TEXTS = int(os.environ.get("COLLOQUY_BENCH_TEXTS", "2000"))
STORED = int(os.environ.get("COLLOQUY_BENCH_STORED", "100000"))
ENCODER = "all-minilm-l6-v2"
THREADS, BATCH_SIZE = 2, 32
HAN = "他她在医院学校工作多年喜欢喝茶散步和孩子们一起踢足球周末常去河边钓鱼画画写信照顾父母梦想开家小书店"
ARABIC = [
    "يعمل",
    "في",
    "مستشفى",
    "صغير",
    "ويحب",
    "المشي",
    "الطويل",
    "وشرب",
    "الشاي",
    "مع",
    "أطفاله",
    "كل",
    "أسبوع",
    "قرب",
    "النهر",
    "والحديقة",
    "القديمة",
]
PAIRS_AT_ONCE = 1024

pytestmark = pytest.mark.skipif(missing(ENCODER) is not None, reason="the encoder's weights are not here: make models")


class Taken(NamedTuple):
    name: str
    wall: float
    processor: float
    vectors: np.ndarray


def corpus(n: int, seed: int = 0) -> list[str]:
    """Six in ten English, a quarter Chinese, the others Arabic; from a few words to more than an encoder reads."""
    random = np.random.default_rng(seed)
    english = iter(personas(n * 4, seed)[0])
    texts = []
    for kind in random.choice(["en", "zh", "ar"], n, p=[0.6, 0.25, 0.15]):
        words = int(random.lognormal(4.0, 0.9)) + 3
        if kind == "en":
            texts.append(" ".join(" ".join(next(english) for _ in range(random.integers(1, 5))).split()[:words]))
        elif kind == "zh":
            texts.append("".join(random.choice(list(HAN), words)))
        else:
            texts.append(" ".join(random.choice(ARABIC, words // 2 + 1)))
    return texts


def test_batches_by_tokens_against_batches_by_characters() -> None:
    from sentence_transformers import SentenceTransformer

    texts = corpus(TEXTS)
    reference = SentenceTransformer(str(path_of(ENCODER)), device="cpu", local_files_only=True)
    encoders = [Encoder(ENCODER, precision=precision, threads=THREADS) for precision in SLACK]
    for encoder in encoders:
        encoder.encode(texts[:64])  # loads, and sets the threads for all
    theirs = _taken(
        f"encode(batch_size={BATCH_SIZE})",
        lambda: reference.encode(texts, batch_size=BATCH_SIZE, normalize_embeddings=True),
    )
    ours = [_taken(f"by tokens, {each.precision}", lambda each=each: each.encode(texts)) for each in encoders]  # type: ignore[misc]

    pieces = np.minimum(np.array(encoders[0].count_pieces(texts)) + 2, 256)
    print(f"\n{len(texts):,} texts of {pieces.mean():.0f} pieces (median {np.median(pieces):.0f}), {THREADS} threads")
    print(
        f"padding: {_padding(pieces, _by_characters(texts)):.0%} of the pieces in batches of {BATCH_SIZE} by "
        f"characters, {_padding(pieces, make_batches(pieces, PIECES_AT_ONCE)):.1%} by tokens"
    )
    for taken in [theirs, *ours]:
        print(
            f"{taken.name:<22} {taken.wall:7.1f} s {theirs.wall / taken.wall:5.2f} ×   processor "
            f"{taken.processor:7.1f} s {theirs.processor / taken.processor:5.2f} ×   cosines off by at most "
            f"{_off(taken.vectors, theirs.vectors):.1e}"
        )
    for taken, (precision, slack) in zip(ours, SLACK.items(), strict=True):
        assert _off(taken.vectors, theirs.vectors) < slack / 2, precision
    assert _off(ours[0].vectors, theirs.vectors) < 2e-6


def test_vectors_kept_in_one_file(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(STORED)]
    encoder = Ready("ready", tmp_path / "ours")
    written = _taken("written", lambda: encoder.encode(texts))
    read = _taken("read", lambda: encoder.encode(texts))
    assert (read.vectors == written.vectors).all()
    ours = (tmp_path / "ours").glob("*.sqlite*")
    print(f"\n{len(texts):,} vectors, {sum(file.stat().st_size for file in ours) / 2**20:.0f} MiB")
    for taken in (written, read):
        print(f"{taken.name:<8} {taken.wall:6.1f} s, processor {taken.processor:6.1f} s")


class Ready(Encoder):
    """Vectors out of nowhere: what is measured is what keeping them takes."""

    dimensions = 384
    fingerprint = "ready" * 4

    def _encode_new(self, texts: Sequence[str]) -> Iterator[tuple[Sequence[int], np.ndarray]]:
        random = np.random.default_rng(0)
        for start in range(0, len(texts), 512):
            rows = range(start, min(start + 512, len(texts)))
            yield rows, random.standard_normal((len(rows), self.dimensions), np.float32)


def _taken(name: str, work: Callable[[], np.ndarray]) -> Taken:
    wall, processor = time.perf_counter(), time.process_time()
    vectors = work()
    return Taken(name, time.perf_counter() - wall, time.process_time() - processor, vectors)


def _off(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference between the cosines of any two texts."""
    return max(
        float(
            np.abs(
                ours[start : start + PAIRS_AT_ONCE] @ ours.T - theirs[start : start + PAIRS_AT_ONCE] @ theirs.T
            ).max()
        )
        for start in range(0, len(ours), PAIRS_AT_ONCE)
    )


def _by_characters(texts: Sequence[str]) -> Iterator[np.ndarray]:
    order = np.argsort([-len(text) for text in texts])
    return (order[start : start + BATCH_SIZE] for start in range(0, len(order), BATCH_SIZE))


def _padding(pieces: np.ndarray, cut: Iterator[np.ndarray]) -> float:
    """The share of the pieces of all batches that fill up."""
    return 1 - pieces.sum() / sum(int(pieces[batch].max()) * len(batch) for batch in cut)
