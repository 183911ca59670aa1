"""The macros with which anybody computes a published number again say what the metrics' own code says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.foundation.stats.turn_weights import turn_weights
from tasks.metrics.panel import Rule, combine_scores
from tasks.metrics.subjective import ScoredTurns
from tests.contract.sql_rows import tables_of

SCORE = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]))


@settings(max_examples=150, deadline=None)
@given(st.lists(SCORE, min_size=1, max_size=5), st.sampled_from(["majority", "mean"]))
def test_a_panels_score_is_that_of_the_metrics(scores: list[float | None], rule: Rule) -> None:
    wanted = combine_scores(np.array([np.nan if score is None else score for score in scores]), rule)
    with tables_of({}) as connection:
        given_ = [score for score in scores if score is not None]
        for said in (scores, given_):  # a judge that gave nothing has a row without a score, or none
            query = "select panel_score(?::double[], ?, ?)"
            (found,) = connection.execute(query, [said, len(scores), rule]).fetchone() or ()
            assert (found is None) == bool(np.isnan(wanted))
            assert found is None or found == pytest.approx(float(wanted), abs=1e-12)


@pytest.mark.parametrize("turns", [1, 2, 3, 10])
@pytest.mark.parametrize("alpha", [0.1, 0.25])
def test_a_turns_weight_is_that_of_the_paper(turns: int, alpha: float) -> None:
    with tables_of({}) as connection:
        query = "select turn_weight(turn, $1, $2) from range(1, $1 + 1) as r(turn)"
        found = [weight for (weight,) in connection.execute(query, [turns, alpha]).fetchall()]
        assert found == pytest.approx(turn_weights(turns, alpha).tolist(), abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.none(), st.sampled_from([0.0, 1.5, 5.0])), min_size=1, max_size=7))
def test_a_weighted_score_is_that_of_the_metrics(scores: list[float | None]) -> None:
    plain = np.array([np.nan if score is None else score for score in scores])
    weights = turn_weights(len(scores), 0.1)
    turns = ScoredTurns(plain, np.zeros(len(scores), int), np.arange(1, len(scores) + 1), np.zeros(1, bool))
    (wanted,) = 20 * turns.means(weights)
    with tables_of({}) as connection:
        query = "select weighted_score(s, w) from (select unnest(?::double[]) as s, unnest(?::double[]) as w)"
        (found,) = connection.execute(query, [scores, weights.tolist()]).fetchone() or ()
    assert (found is None) == bool(np.isnan(wanted))
    assert found is None or found == pytest.approx(wanted, abs=1e-9)
