from __future__ import annotations

import pytest

from tasks.foundation.errors import StoreError
from tasks.foundation.store.accounting import Accounting


def test_every_row_ends_once() -> None:
    rows = Accounting(5, 2, {"duplicate": 1, "not_sampled": 1}, {"parse": 1})
    items = Accounting(4, 3, {}, {"invalid": 1}).moved({"not_selected": 2})
    whole = rows + items
    whole.check("here")
    assert (whole.n_in, whole.n_produced, whole.n_filtered, whole.n_failed) == (9, 3, 4, 2)
    assert Accounting.from_json(whole.to_json()) == whole


@pytest.mark.parametrize("wrong", [Accounting(3, 2), Accounting(1, 2), Accounting(2, 1).moved({"x": 2})])
def test_rows_that_vanish_or_appear_stop_the_commit(wrong: Accounting) -> None:
    with pytest.raises(StoreError, match="does not balance"):
        wrong.check("stage x")
