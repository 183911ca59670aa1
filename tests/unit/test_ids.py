from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.ids import canonical_json, content_id, seed_of, seeded_order


def test_ids_are_the_same_in_another_process() -> None:
    code = "from tasks.foundation.ids import *; print(content_id('scene', 'x', 1), seed_of('a', 2))"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert seen == [content_id("scene", "x", 1), str(seed_of("a", 2))]


def test_parts_that_join_alike_have_different_ids() -> None:
    assert content_id("x", "ab", "c") != content_id("x", "a", "bc")


def test_nan_has_no_canonical_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": float("nan")})


def test_a_lone_surrogate_is_hashed() -> None:
    assert content_id("x", "\ud800") != content_id("x", "\ud801")


@given(st.lists(st.text(), unique=True), st.randoms())
def test_a_seeded_order_does_not_depend_on_row_order(ids: list[str], random: object) -> None:
    shuffled = list(ids)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert [ids[i] for i in seeded_order(ids, "salt")] == [shuffled[i] for i in seeded_order(shuffled, "salt")]
