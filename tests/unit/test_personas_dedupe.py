"""Near-duplicates: the sequential definition, whatever the order, block size or batch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.ids import seeded_order
from tasks.personas.dedupe import Deduplicated, Dropped, deduplicate

SEED = 7


def run(
    ids: list[str], texts: list[str], exact: np.ndarray, noise: np.ndarray | None = None, **how: int
) -> Deduplicated:
    """Deduplicates unit vectors; `noise` is what a batch did to the stored ones."""
    stored = exact if noise is None else exact + noise
    return deduplicate(ids, texts, stored.astype(np.float32), lambda i: exact[i], threshold=0.85, seed=SEED, **how)


def by_definition(ids: list[str], texts: list[str], exact: np.ndarray) -> dict[str, tuple[str, float | None] | None]:
    """id → None if kept, else the kept-before one it is closest to and the cosine; straight from the text."""
    kept: list[int] = []
    ended: dict[str, tuple[str, float | None] | None] = {}
    for i in seeded_order(ids, SEED, "personas.dedupe"):
        same = [k for k in kept if texts[k] == texts[i]]
        cosines = [float(exact[i] @ exact[k]) for k in kept]
        if same:
            ended[ids[i]] = (ids[same[0]], None)
        elif cosines and max(cosines) >= 0.85:
            best = int(np.argmax(cosines))
            ended[ids[i]] = (ids[kept[best]], cosines[best])
        else:
            kept.append(i)
            ended[ids[i]] = None
    return ended


def by_id(result: Deduplicated, ids: list[str]) -> dict[str, tuple[str, float | None] | None]:
    ended: dict[str, tuple[str, float | None] | None] = {ids[i]: None for i in result.kept}
    return ended | {ids[d.position]: (ids[d.closest], d.cosine) for d in result.dropped}


def unit_rows(angles: list[float]) -> np.ndarray:
    """Unit vectors in the plane: the cosine of two is that of the difference of their angles."""
    rows = np.zeros((len(angles), 4))
    rows[:, 0], rows[:, 1] = np.cos(angles), np.sin(angles)
    return rows


LIMIT = float(np.arccos(0.85))
ANGLES = st.lists(
    st.one_of(st.floats(0, 3), st.sampled_from([LIMIT * k for k in range(4)] + [LIMIT + 1e-6, LIMIT - 1e-6, 0.0])),
    min_size=1,
    max_size=40,
)


@given(ANGLES, st.randoms(use_true_random=False), st.integers(1, 50), st.integers(0, 2**31))
def test_the_kept_set_is_that_of_the_sequential_definition(angles, random, block, noise_seed) -> None:
    exact = unit_rows(angles)
    ids = [f"persona_{i}" for i in range(len(angles))]
    texts = [random.choice(["same", f"text {i}"]) if angles[i] == 0.0 else f"text {i}" for i in range(len(angles))]
    noise = np.random.default_rng(noise_seed).uniform(-2e-6, 2e-6, exact.shape)
    expected = by_definition(ids, texts, exact)
    found = by_id(run(ids, texts, exact, noise, block=block), ids)
    assert found.keys() == expected.keys()
    for identity, end in expected.items():
        got = found[identity]
        assert (got is None) == (end is None)
        if end is not None and got is not None:
            assert got[1] == end[1]
            assert got[0] == end[0] or end[1] is not None  # equal cosines may name either of two equal angles


@given(ANGLES, st.randoms(use_true_random=False), st.integers(1, 50))
def test_row_order_and_block_size_change_nothing(angles, random, block) -> None:
    exact = unit_rows(angles)
    ids = [f"persona_{i}" for i in range(len(angles))]
    texts = [f"text {angle}" for angle in angles]
    order = list(range(len(ids)))
    random.shuffle(order)
    shuffled = run([ids[i] for i in order], [texts[i] for i in order], exact[order], block=block)
    assert by_id(shuffled, [ids[i] for i in order]) == by_id(run(ids, texts, exact), ids)


def test_a_pair_at_the_threshold_is_decided_on_exact_vectors() -> None:
    exact = np.array([[1.0, 0.0], [0.85, np.sqrt(1 - 0.85**2)]])
    below, above = exact.copy(), exact.copy()
    below[1, 0] -= 5e-5
    above[1, 0] += 5e-5
    for stored in (below, above):
        result = run(["a", "b"], ["x", "y"], exact, stored - exact)
        assert [dropped.cosine for dropped in result.dropped] == [pytest.approx(0.85, abs=1e-12)]
    exact[1] = [0.849999, np.sqrt(1 - 0.849999**2)]
    assert run(["a", "b"], ["x", "y"], exact, above - exact).dropped == ()


def test_the_same_text_is_an_exact_duplicate_of_the_kept_one() -> None:
    exact = unit_rows([0.0, 0.0, 2.0])
    result = run(["a", "b", "c"], ["same", "same", "other"], exact)
    (dropped,) = result.dropped
    kept = next(i for i in result.kept if i in (0, 1))
    assert dropped == Dropped(position=1 - kept, closest=kept, cosine=None, method="exact")


def test_a_dropped_one_does_not_drop_others() -> None:
    # Three in a row, each close to its neighbour only: whoever comes first, nobody falls because of a fallen one.
    exact = unit_rows([0.0, 0.5, 1.0])
    ids = next(
        names
        for n in range(100)
        if seeded_order(names := [f"{n}{x}" for x in "abc"], SEED, "personas.dedupe") == [0, 1, 2]
    )
    result = run(ids, ["x", "y", "z"], exact)
    assert result.kept == (0, 2)
    assert [dropped.position for dropped in result.dropped] == [1]


def test_nobody_is_deduplicated_among_no_one() -> None:
    assert run([], [], np.zeros((0, 4))) == Deduplicated((), ())
