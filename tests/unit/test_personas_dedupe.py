"""Near-duplicates: the sequential definition, whatever the order, block size or batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.errors import TableError
from tasks.foundation.ids import seeded_order
from tasks.foundation.texts import approximate, nearest
from tasks.foundation.texts.bounds import Bound, principal_axes
from tasks.foundation.texts.dedupe import Deduplicated, Dropped, deduplicate
from tasks.foundation.texts.encoder import SLACK

SEED = 7
WAYS = ("full", "bfloat16", "float32")
"""As it is for few vectors, and with a bound of either kind of number."""


def run(
    ids: list[str],
    texts: list[str],
    exact: np.ndarray,
    noise: np.ndarray | None = None,
    *,
    way: str = "full",
    threshold: float = 0.85,
    **how: Any,
) -> Deduplicated:
    """Deduplicates unit vectors; `noise` is what a batch did to the stored ones."""
    stored = (exact if noise is None else exact + noise).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        bound = None if way == "full" else Bound(principal_axes(stored)[:, :2], way)  # type: ignore[arg-type]
        patch.setattr(approximate, "choose_bound", lambda *_: bound)
        return deduplicate(ids, texts, stored, lambda i: exact[i], threshold=threshold, seed=SEED, **how)


def by_definition(
    ids: list[str], texts: list[str], exact: np.ndarray, threshold: float = 0.85
) -> dict[str, tuple[str, float | None] | None]:
    """id → None if kept, else the kept-before one it is closest to and the cosine; straight from the text."""
    kept: list[int] = []
    ended: dict[str, tuple[str, float | None] | None] = {}
    for i in seeded_order(ids, SEED, "personas.dedupe"):
        cosines = np.vecdot(exact[kept], exact[i])
        same = next((k for k in kept if texts[k] == texts[i]), None)
        if same is not None:
            ended[ids[i]] = (ids[same], None)
        elif kept and cosines.max() >= threshold:
            best = int(np.argmax(cosines))
            ended[ids[i]] = (ids[kept[best]], float(cosines[best]))
        else:
            kept.append(i)
            ended[ids[i]] = None
    return ended


def by_id(result: Deduplicated, ids: list[str]) -> dict[str, tuple[str, float | None] | None]:
    ended: dict[str, tuple[str, float | None] | None] = {ids[i]: None for i in result.kept}
    return ended | {ids[d.row]: (ids[d.closest], d.cosine) for d in result.dropped}


def assert_same(found: dict[str, tuple[str, float | None] | None], expected: dict[str, Any]) -> None:
    """The same kept, the same reasons; cosines that no decision hangs on may be those of the stored vectors."""
    assert {name: end and end[0] for name, end in found.items()} == {
        name: end and end[0] for name, end in expected.items()
    }
    for name, end in expected.items():
        got = found[name]
        if got is not None:
            assert (got[1] is None) == (end[1] is None)
            assert got[1] == (end[1] and pytest.approx(end[1], abs=1e-5))


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


@given(ANGLES, st.randoms(use_true_random=False), st.integers(1, 50), st.integers(0, 2**31), st.sampled_from(WAYS))
def test_the_kept_set_is_that_of_the_sequential_definition(angles, random, block, noise_seed, way) -> None:
    exact = unit_rows(angles)
    ids = [f"persona_{i}" for i in range(len(angles))]
    texts = [random.choice(["same", f"text {i}"]) if angles[i] == 0.0 else f"text {i}" for i in range(len(angles))]
    noise = np.random.default_rng(noise_seed).uniform(-2e-6, 2e-6, exact.shape)
    expected = by_definition(ids, texts, exact)
    found = by_id(run(ids, texts, exact, noise, block=block, way=way), ids)
    assert_same(found, expected)


@given(ANGLES, st.integers(0, 2**31), st.sampled_from(WAYS))
def test_vectors_of_lower_precision_keep_the_same_when_the_slack_says_how_far_off_they_are(angles, seed, way) -> None:
    exact = unit_rows(angles)
    near = exact + np.random.default_rng(seed).uniform(-0.003, 0.003, exact.shape)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    assert np.abs(near @ near.T - exact @ exact.T).max() < SLACK["bfloat16"]
    ids, texts = [f"persona_{i}" for i in range(len(angles))], [f"text {i}" for i in range(len(angles))]
    found = by_id(run(ids, texts, exact, near - exact, way=way, slack=SLACK["bfloat16"]), ids)
    expected = by_definition(ids, texts, exact)
    assert {name: end and end[0] for name, end in found.items()} == {
        name: end and end[0] for name, end in expected.items()
    }


@given(ANGLES, st.randoms(use_true_random=False), st.integers(1, 50))
def test_row_order_and_block_size_change_nothing(angles, random, block) -> None:
    exact = unit_rows(angles)
    ids = [f"persona_{i}" for i in range(len(angles))]
    texts = [f"text {angle}" for angle in angles]
    order = list(range(len(ids)))
    random.shuffle(order)
    shuffled = run([ids[i] for i in order], [texts[i] for i in order], exact[order], block=block)
    assert by_id(shuffled, [ids[i] for i in order]) == by_id(run(ids, texts, exact), ids)


def personas(n: int, share: float, seed: int = 0, d: int = 40) -> np.ndarray:
    """Unit vectors as sentence encoders make them (a common direction, few strong ones); `share` of them copies
    of others, from almost equal to about the threshold."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((n, d)) * np.arange(2, d + 2) ** -0.5
    rows[:, 0] += 1.5
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    copies = random.permutation(n)[: round(share * n)]
    apart = random.standard_normal((len(copies), d)) / np.sqrt(d) * random.uniform(0, 1, (len(copies), 1))
    rows[copies] = rows[random.integers(0, n, len(copies))] + apart
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(("share", "threshold"), [(0.05, 0.85), (0.4, 0.85), (0.4, 0.95), (0.4, 0.5), (0.4, 1.0)])
def test_no_way_of_searching_changes_the_result(share: float, threshold: float) -> None:
    exact = personas(700, share)
    exact[680:] = exact[:20]
    ids, texts = [f"p{i}" for i in range(700)], [f"text {i % 680}" for i in range(700)]
    expected = by_definition(ids, texts, exact, threshold)
    assert any(end is None for end in expected.values()) and any(end and end[1] is None for end in expected.values())
    for way in WAYS:
        assert_same(by_id(run(ids, texts, exact, way=way, threshold=threshold, block=128), ids), expected)


@pytest.mark.parametrize("way", WAYS)
def test_of_ten_thousand_equal_vectors_one_is_kept(way: str) -> None:
    n = 10_000
    exact = np.broadcast_to(personas(1, 0)[0], (n, 40))
    ids = [f"p{i}" for i in range(n)]
    result = run(ids, [f"text {i}" for i in range(n)], exact, way=way)
    first = seeded_order(ids, SEED, "personas.dedupe")[0]
    assert result.kept == (first,)
    assert {(each.closest, each.method) for each in result.dropped} == {(first, "embedding")}
    assert len(result.dropped) == n - 1


def test_where_all_are_alike_and_none_is_a_duplicate_all_are_kept() -> None:
    # A common direction and one of its own each: every cosine is 0.84 but those with the common direction itself.
    exact = np.sqrt(0.16) * np.eye(400)
    exact[1:, 0] = np.sqrt(0.84)
    exact[0, 0] = 1.0
    ids = [f"p{i}" for i in range(400)]
    expected = by_definition(ids, ids, exact)
    assert sum(end is None for end in expected.values()) >= 399
    for way in WAYS:
        assert_same(by_id(run(ids, ids, exact, way=way, block=64), ids), expected)


@pytest.mark.parametrize("way", WAYS)
def test_a_zero_vector_is_close_to_nothing(way: str) -> None:
    exact = unit_rows([0.0, 0.1, 0.2])
    exact[:2] = 0.0
    assert len(run(["a", "b", "c"], ["x", "y", "z"], exact, way=way, threshold=0.5).kept) == 3


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 0.3])
def test_a_vector_without_a_length_of_one_is_refused_by_name(wrong: float) -> None:
    exact = unit_rows([0.0, 1.0])
    exact[1, 2] = wrong
    with pytest.raises(TableError, match=r"found one of length .* for 'b'"):
        run(["a", "b"], ["x", "y"], exact)


@pytest.mark.parametrize("way", WAYS)
def test_one_and_two_candidates_are_deduplicated_too(way: str) -> None:
    assert run(["a"], ["x"], unit_rows([0.0]), way=way) == Deduplicated((0,), ())
    two = run(["a", "b"], ["x", "y"], unit_rows([0.0, 0.1]), way=way)
    assert len(two.kept) == len(two.dropped) == 1


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


def test_only_where_a_decision_hangs_on_it_is_a_text_encoded_again() -> None:
    exact = unit_rows([0.0, 0.1, LIMIT - 1e-6, 3.0])
    asked: list[int] = []

    def encode_alone(position: int) -> np.ndarray:
        asked.append(position)
        return exact[position]

    ids = list("abcd")
    order = seeded_order(ids, SEED, "personas.dedupe")
    vectors = exact[np.argsort(order)].astype(np.float32)  # the walk comes to the angles as they stand above
    result = deduplicate(ids, ids, vectors, lambda i: encode_alone(order.index(i)), threshold=0.85, seed=SEED)
    assert {order.index(each.row): order.index(each.closest) for each in result.dropped} == {1: 0, 2: 0}
    assert set(asked) == {0, 2}


def test_the_same_text_is_an_exact_duplicate_of_the_kept_one() -> None:
    exact = unit_rows([0.0, 0.0, 2.0])
    result = run(["a", "b", "c"], ["same", "same", "other"], exact)
    (dropped,) = result.dropped
    kept = next(i for i in result.kept if i in (0, 1))
    assert dropped == Dropped(row=1 - kept, closest=kept, cosine=None, method="exact")


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
    assert [dropped.row for dropped in result.dropped] == [1]


def test_an_approximate_search_drops_nobody_without_a_kept_one_that_is_near_and_says_what_it_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(approximate, "WORTH_APPROXIMATING", 0)
    exact = personas(2000, 0.4)
    ids = [f"p{i}" for i in range(2000)]
    result = run(ids, ids, exact, search="approximate", block=128)
    assert result.recall is not None and 0.8 * result.recall.n_near < result.recall.n_found <= result.recall.n_near
    for dropped in result.dropped:
        assert dropped.closest in result.kept and exact[dropped.row] @ exact[dropped.closest] >= 0.85 - 1e-6
    everybody = run(ids, ids, exact, block=128)
    assert 0.9 * len(everybody.dropped) < len(result.dropped) and everybody.recall is None
    assert run(ids, ids, exact, search="approximate", block=128) == result


def test_nobody_is_deduplicated_among_no_one() -> None:
    assert run([], [], np.zeros((0, 4))) == Deduplicated((), ())


@pytest.mark.parametrize("way", WAYS)
def test_rivals_are_kept_as_far_as_stored_vectors_may_be_off_however_many_pairs_there_are(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(nearest, "MANY", 50)
    random = np.random.default_rng(3)
    centres = random.standard_normal((12, 32))
    exact = centres[random.integers(0, 12, 400)] + 0.42 * random.standard_normal((400, 32))
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    noise = random.standard_normal(exact.shape)
    stored = exact + 0.006 * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    noise = stored / np.linalg.norm(stored, axis=1, keepdims=True) - exact
    ids = [f"p{number}" for number in range(400)]
    expected = by_definition(ids, ids, exact)
    assert 50 < sum(end is None for end in expected.values()) < 350
    for block in (16, 128):
        found = by_id(run(ids, ids, exact, noise, way=way, slack=0.02, block=block), ids)
        assert {name: end and end[0] for name, end in found.items()} == {
            name: end and end[0] for name, end in expected.items()
        }
