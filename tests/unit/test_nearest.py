"""The searches for near vectors: no pair above the floor is missed, whatever bound, dtype of number or machine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.foundation.texts import approximate
from tasks.foundation.texts.approximate import ApproximateSearch, open_search
from tasks.foundation.texts.bounds import (
    DTYPES,
    Bound,
    Dtype,
    as_float32,
    bfloat16_above,
    choose_bound,
    fastest_product,
    nearest_bfloat16,
    points_of,
    principal_axes,
)
from tasks.foundation.texts.nearest import RIVAL, SPARE, BoundedSearch, KeptSearch

BLOCK = 96


def unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def decaying(n: int, d: int = 48, seed: int = 0) -> np.ndarray:
    """Unit vectors about a common direction, most of their spread in few others, in families of near ones."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1))
    rows[:, 0] += 1.5
    members = random.permutation(n)[: n // 3]
    apart = 10 ** random.uniform(-4, -1, (len(members), 1))
    rows[members] = rows[random.integers(0, n, len(members))] + apart * random.standard_normal((len(members), d))
    return unit(rows)


def found_by(search: KeptSearch, n: int, keep_every: int = 2) -> set[tuple[int, int]]:
    """All pairs found when blocks are ordered and every so manieth row is kept."""
    pairs: set[tuple[int, int]] = set()
    for start in range(0, n, BLOCK):
        rows = np.arange(start, min(start + BLOCK, n))
        among = rows % keep_every == 0
        for each in (search.near(rows), search.within(rows, among)):
            pairs |= set(zip((rows[each.query]).tolist(), each.step.tolist(), strict=True))
        search.keep(rows[among])
    return pairs


def above(vectors: np.ndarray, order: np.ndarray, floor: float, keep_every: int = 2) -> set[tuple[int, int]]:
    """Pairs of a place and an earlier kept one with a float64 cosine above the floor, from all cosines."""
    ordered = vectors[order].astype(np.float64)
    row, other = np.nonzero(np.tril(ordered @ ordered.T, -1) > floor)
    return {(r, o) for r, o in zip(row.tolist(), other.tolist(), strict=True) if o % keep_every == 0}


def searches(vectors: np.ndarray, order: np.ndarray, floor: float) -> dict[str, KeptSearch]:
    axes = principal_axes(vectors)
    bounded = {
        f"{dtype} {k}": BoundedSearch(vectors, order, floor, Bound(axes[:, :k], dtype), threads=2)
        for dtype in DTYPES
        for k in (1, 7, vectors.shape[1])
    }
    return {"full": KeptSearch(vectors, order, floor), **bounded}


@pytest.mark.parametrize("floor", [0.5, 0.85, 0.9999])
def test_every_search_finds_every_pair_above_the_floor_and_none_below(floor: float) -> None:
    vectors = decaying(500)
    order = np.random.default_rng(1).permutation(len(vectors))
    surely, possibly = above(vectors, order, floor + SPARE), above(vectors, order, floor - 3 * SPARE)
    assert surely
    for name, search in searches(vectors, order, floor).items():
        found = found_by(search, len(vectors))
        assert surely <= found <= possibly, name


@given(st.integers(0, 2**31), st.integers(1, 120), st.integers(2, 12), st.floats(0.3, 1.0))
@settings(max_examples=25)
def test_every_search_finds_the_same_in_any_small_corpus(seed: int, n: int, d: int, floor: float) -> None:
    random = np.random.default_rng(seed)
    vectors = unit(random.choice([-1.0, 0.0, 0.5, 2.0], (n, d)))  # many equal ones, many at the floor, zeros
    order = random.permutation(n)
    surely, possibly = above(vectors, order, floor + SPARE), above(vectors, order, floor - 3 * SPARE)
    for name, search in searches(vectors, order, floor).items():
        assert surely <= found_by(search, n) <= possibly, name


def test_where_all_are_alike_the_closest_of_each_row_are_found() -> None:
    vectors = unit(np.ones(32) + np.random.default_rng(3).normal(0, 0.2, (1200, 32)))
    order = np.arange(len(vectors))
    for name, search in searches(vectors, order, 0.5).items():
        search.keep(order[:1000])
        rows = order[1000:]
        cosines = vectors[rows] @ vectors[:1000].T
        found = search.near(rows)
        assert len(found) < cosines.size
        assert np.allclose(found.highest(len(rows)), cosines.max(axis=1), atol=SPARE), name
        closest = set(zip(*np.nonzero(cosines > cosines.max(axis=1, keepdims=True) - RIVAL / 2), strict=True))
        assert closest <= set(zip(found.query.tolist(), found.step.tolist(), strict=True)), name


def test_within_a_block_all_pairs_are_found_even_where_all_are_alike() -> None:
    vectors = unit(np.ones(32) + np.random.default_rng(3).normal(0, 0.2, (600, 32)))
    rows = np.arange(len(vectors))
    for name, search in searches(vectors, rows, 0.5).items():
        assert len(search.within(rows, np.ones(600, bool))) == 600 * 599 // 2, name


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_bound_is_never_below_the_cosine(dtype: Dtype) -> None:
    vectors = decaying(400, seed=5)
    order, floor = np.arange(400), 0.85
    points = points_of(vectors, order, Bound(principal_axes(vectors)[:, :9], dtype), floor)
    values, limit = points.values, points.limit
    if dtype == "bfloat16":
        values, limit = as_float32(values), float(as_float32(np.array([limit], np.int16))[0])
    lost = floor - limit
    assert 0 < lost < 0.01
    exact = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    assert (values.astype(np.float64) @ values.T.astype(np.float64) + lost + 2**-9 >= exact).all()


@given(st.lists(st.floats(2**-100, 2.0**100, width=32), min_size=1))
def test_bfloat16_is_rounded_as_torch_rounds_it_and_upwards_where_asked(numbers: list[float]) -> None:
    import torch

    values = np.array(numbers, np.float32)
    for signed in (values, -values):
        expected = torch.from_numpy(signed).to(torch.bfloat16)
        assert (as_float32(nearest_bfloat16(signed)) == expected.float().numpy()).all()
    up = as_float32(bfloat16_above(values))
    assert (up >= values).all() and (up <= values * (1 + 2**-7)).all()


def test_the_closer_the_floor_is_to_what_is_usual_the_more_a_bound_takes_until_none_pays() -> None:
    random, d = np.random.default_rng(0), 128
    vectors = unit(random.standard_normal((5000, d)) * np.arange(1, d + 1) ** -0.25)

    def width(floor: float, some: np.ndarray = vectors) -> int | None:
        bound = choose_bound(some, np.arange(len(some)), floor)
        return None if bound is None else bound.axes.shape[1] + 1

    assert (width(0.95), width(0.6)) == (32, 96)
    assert width(0.1) is None
    assert width(0.95, vectors[:100]) is None  # a moment's work anyway


def test_torch_keeps_its_number_of_threads() -> None:
    import torch

    found = torch.get_num_threads()
    vectors = decaying(300)
    search = BoundedSearch(vectors, np.arange(300), 0.8, Bound(principal_axes(vectors)[:, :4], "float32"), threads=3)
    found_by(search, 300)
    fastest_product.cache_clear()
    assert fastest_product() in DTYPES
    assert torch.get_num_threads() == found


def test_an_approximate_search_finds_no_pair_that_is_none_and_says_how_many_it_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors = decaying(3000)
    order = np.random.default_rng(1).permutation(len(vectors))
    surely, possibly = above(vectors, order, 0.85 + SPARE), above(vectors, order, 0.85 - 3 * SPARE)
    for probes in (1, 64):
        monkeypatch.setattr(approximate, "PROBES", probes)
        search = ApproximateSearch(vectors, order, 0.85)
        found = found_by(search, len(vectors))
        assert found <= possibly
        recall = search.measure_recall()
        assert recall.n_near > 100
        share = recall.n_found / recall.n_near
        assert 0.5 < share <= 1 and (share == 1 and surely <= found if probes == 64 else share < 1)


def test_an_approximate_search_finds_the_same_again() -> None:
    vectors, order = decaying(2000), np.arange(2000)
    one, other = (found_by(ApproximateSearch(vectors, order, 0.85), 2000) for _ in range(2))
    assert one == other


def test_only_many_vectors_are_searched_approximately(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, order = decaying(20), np.arange(20)
    for name in ("exact", "approximate"):
        assert type(open_search(name, vectors, order, 0.8)) is KeptSearch
    monkeypatch.setattr(approximate, "WORTH_APPROXIMATING", 10)
    assert type(open_search("exact", vectors, order, 0.8)) is KeptSearch
    assert isinstance(open_search("approximate", vectors, order, 0.8), ApproximateSearch)
