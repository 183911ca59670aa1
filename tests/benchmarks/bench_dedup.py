"""Deduplication against what else does it, on the same vectors in the same run, on two cores.

COLLOQUY_BENCH_VECTORS=100000     vectors of the first two tables
COLLOQUY_BENCH_PERSONAS=2000      texts of the last table; encoding 20000 takes minutes
COLLOQUY_BENCH_MILLION=1          a million vectors too: a quarter of an hour, 1.5 GB of disk, 5 GB of memory
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tasks.foundation.ids import seeded_order
from tasks.foundation.texts.bounds import fastest_product
from tasks.foundation.texts.dedupe import Deduplicated, deduplicate
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.nearest import SearchName
from tasks.foundation.weights import missing
from tests.benchmarks import dedup_rivals as rivals
from tests.benchmarks.dedup_corpus import DIMENSIONS, like_sentences, personas

VECTORS = int(os.environ.get("COLLOQUY_BENCH_VECTORS", "100000"))
PERSONAS = int(os.environ.get("COLLOQUY_BENCH_PERSONAS", "2000"))
MILLION = os.environ.get("COLLOQUY_BENCH_MILLION") == "1"
CHECKED = 20_000
ENCODER = "all-minilm-l6-v2"
THRESHOLD, SEED = 0.85, 7


@pytest.fixture(autouse=True)
def two_cores() -> Iterator[None]:
    """Everything of a test on the same two cores, where the system can say so."""
    if hasattr(os, "sched_setaffinity"):
        found = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(found)[:2])
        yield
        os.sched_setaffinity(0, found)
    else:
        yield


def test_the_same_as_brute_force() -> None:
    vectors = like_sentences(min(CHECKED, VECTORS))
    order = _order(len(vectors))
    closest, cosine = rivals.brute_force(vectors[order], THRESHOLD)
    result = _ours(vectors)
    place = np.argsort(order)
    ours = np.full(len(vectors), -1)
    for each in result.dropped:
        ours[place[each.row]] = place[each.closest]
        assert each.cosine == pytest.approx(cosine[place[each.row]], abs=1e-6)
    print(
        f"\n{len(vectors):,} vectors: {len(result.dropped):,} dropped, each because of the one that brute force names"
    )
    assert (ours == closest).all()


def test_against_mining_and_a_flat_index() -> None:
    vectors = like_sentences(VECTORS)
    walked = vectors[_order(VECTORS)]
    fastest_product()  # torch is there from now on, for all
    seconds, results = [], []
    for rival in (rivals.by_paraphrase_mining, rivals.by_flat_index, None):
        taken, result = _timed(lambda: _ours(vectors))
        seconds.append(taken)
        if rival is not None:
            results.append((rival.__name__, *_timed(lambda rival=rival: rival(walked, THRESHOLD))))  # type: ignore[misc]
    ours = statistics.median(seconds)
    print(f"\n{VECTORS:,} × {DIMENSIONS} vectors, {fastest_product()}, {len(result.dropped):,} dropped")
    print(f"exact search, with ids, reasons and float64 {ours:8.1f} s  (of {', '.join(f'{s:.1f}' for s in seconds)})")
    for name, taken, kept in results:
        others = int((kept != _kept(result, VECTORS)).sum())
        print(f"{name:<43} {taken:8.1f} s  {taken / ours:5.1f} ×   {others} decided otherwise")


def test_approximate_search_against_exact() -> None:
    vectors = like_sentences(2 * VECTORS)
    fastest_product()
    taken, exact = _timed(lambda: _ours(vectors))
    approximate_taken, approximate = _timed(lambda: _ours(vectors, "approximate"))
    dropped, found = ({each.row for each in result.dropped} for result in (exact, approximate))
    recall = approximate.recall
    assert recall is not None
    print(
        f"\n{len(vectors):,} vectors: exact {taken:.1f} s, approximate {approximate_taken:.1f} s, finds "
        f"{len(found & dropped) / len(dropped):.2%} of {len(dropped):,}, drops {len(found - dropped)} wrongly; it says "
        f"that it found {recall.n_found} of {recall.n_near}"
    )
    assert abs(len(found & dropped) / len(dropped) - recall.n_found / recall.n_near) < 0.05


@pytest.mark.skipif(not MILLION, reason="COLLOQUY_BENCH_MILLION=1 asks for it")
def test_a_million_against_inverted_lists(tmp_path: Path) -> None:
    n = 1_000_000
    like_sentences(n, out=np.lib.format.open_memmap(tmp_path / "v.npy", "w+", np.float32, (n, DIMENSIONS)))
    vectors = np.load(tmp_path / "v.npy", mmap_mode="r")
    with _memory() as extra:
        taken, result = _timed(lambda: _ours(vectors))
    dropped = ~_kept(result, n)
    print(f"\n{n:,} × {DIMENSIONS} vectors on disk: {taken:.0f} s, {dropped.sum():,} dropped, {extra()} beside them")
    walked = vectors[_order(n)]
    lists, kept = _timed(lambda: rivals.by_inverted_lists(walked, THRESHOLD))
    found, wrong = (dropped & ~kept).sum() / dropped.sum(), (~dropped & ~kept).sum()
    print(
        f"faiss, 4,096 lists, 4 probes: {lists:.0f} s, finds {found:.2%} of them, drops {wrong} wrongly; exact takes "
        f"{taken / lists:.2f} of it"
    )


@pytest.mark.skipif(missing(ENCODER) is not None, reason="the encoder's weights are not here: make models")
def test_texts_in_pool_out_against_semhash(tmp_path: Path) -> None:
    if not rivals.SEMHASH.exists():
        pytest.skip(f"needs an environment with semhash: {rivals.SEMHASH}")
    texts, planted = personas(PERSONAS)
    encoder = Encoder(ENCODER, tmp_path / "vectors", threads=2)
    encoded, vectors = _timed(lambda: encoder.encode(texts))
    ids = _ids(len(texts))
    taken, result = _timed(
        lambda: deduplicate(
            ids, texts, vectors, lambda i: encoder.encode_alone(texts[i]), threshold=THRESHOLD, seed=SEED
        )
    )
    order = _order(len(texts))
    kept, by_semhash = rivals.by_semhash([texts[i] for i in order], vectors[order], THRESHOLD, tmp_path)
    print(f"\n{PERSONAS:,} texts, {len(planted):,} of them copies; encoded in {encoded:.0f} s, for both")
    for name, seconds, chosen in (
        ("exact search", taken, _kept(result, len(texts))),
        ("semhash", by_semhash, kept),
    ):
        print(f"{name:<14} {seconds:8.1f} s  " + _quality(chosen, vectors[order], planted, np.argsort(order)))


def _quality(kept: np.ndarray, walked: np.ndarray, planted: list[tuple[int, int]], place: np.ndarray) -> str:
    exact = walked.astype(np.float64)
    close = np.zeros(len(exact), bool)
    for row, vector in enumerate(exact):
        cosines = exact @ vector
        cosines[row] = -1
        close[row] = cosines[kept].max() >= THRESHOLD
    found = sum(not (kept[place[a]] and kept[place[b]]) for a, b in planted)
    return (
        f"{found:,} of {len(planted):,} copies found, {(~kept & ~close).sum():,} of {(~kept).sum():,} removed without "
        f"a near one in the pool, {(kept & close).sum():,} of {kept.sum():,} in the pool near another"
    )


def _ours(vectors: np.ndarray, search: SearchName = "exact") -> Deduplicated:
    def exact(row: int) -> np.ndarray:
        vector = vectors[row].astype(np.float64)
        return np.asarray(vector / np.linalg.norm(vector))

    ids = _ids(len(vectors))
    return deduplicate(ids, ids, vectors, exact, threshold=THRESHOLD, seed=SEED, search=search)


def _ids(n: int) -> list[str]:
    return [f"persona_{number}" for number in range(n)]


def _order(n: int) -> np.ndarray:
    return np.array(seeded_order(_ids(n), SEED, "personas.dedupe"))


def _kept(result: Deduplicated, n: int) -> np.ndarray:
    """Whether each place of the walk is kept."""
    kept = np.zeros(n, bool)
    kept[list(result.kept)] = True
    return kept[_order(n)]


def _timed(work: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


@contextmanager
def _memory() -> Iterator[Callable[[], str]]:
    """How much anonymous memory (mapped files aside) was in use at most, beyond that at the beginning."""
    status = Path("/proc/self/status")
    ended = threading.Event()
    seen = [_anonymous(status)] if status.exists() else []

    def watch() -> None:
        while seen and not ended.wait(0.05):
            seen.append(_anonymous(status))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lambda: f"at most {(max(seen) - seen[0]) / 2**20:.2f} GiB" if seen else "memory not measured"
    finally:
        ended.set()
        watcher.join()


def _anonymous(status: Path) -> int:
    """KiB."""
    line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1])
