"""Shares with intervals that reports work out in SQL: guards by model, and labels that dialogues are faithful to."""

from __future__ import annotations

from typing import Any

import pytest
from statsmodels.stats.proportion import proportion_confint

from tasks.foundation import ROOT
from tests.contract.sql_rows import _row, tables_of


def _ask(report: str, rows: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    with tables_of(rows) as connection:
        found = connection.execute((ROOT / "sql" / "reports" / f"{report}.sql").read_text(encoding="utf-8"))
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (0, 20), (1, 3), (7, 20), (20, 20), (137, 1000)])
def test_wilsons_interval_is_that_of_statsmodels(hits: int, n: int) -> None:
    with tables_of({}) as connection:
        found = connection.execute(f"select wilson({hits}, {n}, -1), wilson({hits}, {n}, 1)").fetchone()
    assert found == pytest.approx(proportion_confint(hits, n, method="wilson"), abs=2e-4)


def test_guards_are_counted_by_who_wrote_what() -> None:
    talk = {"conversation_id": "v1"}
    rows = {
        "dialogues": [
            _row("dialogues", dialogue_id=f"d{n}", writer="w", guards=["merged"] * (n == 0)) for n in range(4)
        ],
        "interactions": [_row("interactions", interaction_id="n1", target="t", partner="p", fault="none")],
        "interaction_turns": [
            _row("interaction_turns", interaction_id="n1", turn_index=turn, speaker=1 + (turn + 1) % 2, guards=guards)
            for turn, guards in enumerate(([], ["refusal", "repeat"], ["repeat"]), start=1)
        ],
        "conversations": [
            _row("conversations", **talk, target="t", simulator="s", fault="none", final_guards=["wrong_language"])
        ],
        "conversation_turns": [
            _row("conversation_turns", **talk, turn_index=1, user_guards=["repeat"], answer_guards=["ai_voice"]),
            _row("conversation_turns", **talk, turn_index=2, user_guards=[], answer_guards=[]),
        ],
    }
    found = {(row["wrote"], row["model"], row["guard"]): (row["times"], row["n"]) for row in _ask("guards", rows)}
    assert found == {
        ("dialogue", "w", "any"): (1, 4),
        ("dialogue", "w", "merged"): (1, 4),
        ("utterance", "t", "any"): (1, 2),
        ("utterance", "t", "repeat"): (1, 2),
        ("utterance", "p", "any"): (1, 1),
        ("utterance", "p", "refusal"): (1, 1),
        ("utterance", "p", "repeat"): (1, 1),
        ("user turn", "s", "any"): (1, 2),  # the first is the seed's, the last one was not answered
        ("user turn", "s", "wrong_language"): (1, 2),
        ("answer", "t", "any"): (1, 2),
        ("answer", "t", "ai_voice"): (1, 2),
    }


def test_labels_known_before_writing_are_counted_as_kept_and_others_left_out() -> None:
    def review(element: str, annotator: str, action: str | None) -> dict[str, Any]:
        return _row("reviews", dialogue_id="d1", element=element, annotator=annotator, action=action)

    def verdict(element: str, outcome: str, changed: bool) -> dict[str, Any]:
        return _row("verdicts", dialogue_id="d1", element=element, outcome=outcome, changed=changed)

    rows = {
        "dialogues": [_row("dialogues", dialogue_id="d1", language="zh")],
        "reviews": [
            review("persona.1.hobby", "a", "keep"),
            review("persona.1.hobby", "b", "edit"),
            review("persona.2.hobby", "a", "keep"),
            review("persona.2.hobby", "b", None),
            review("goal.goal1", "a", "reject"),
            review("goal.goal_completion", "a", "keep"),
            review("scene.workflow", "a", "keep"),
            review("utterance.1.intent", "a", "keep"),
        ],
        "verdicts": [
            verdict("persona.1.hobby", "majority", True),
            verdict("persona.2.hobby", "unanimous", False),
            verdict("goal.goal1", "rejected", True),
        ],
    }
    found = {row["element"]: row for row in _ask("faithful_labels", rows)}
    assert set(found) == {"persona.hobby", "goal.goal1"}
    hobby = found["persona.hobby"]
    assert [hobby[name] for name in ("language", "labels", "reviews", "kept", "verdicts", "unchanged")] == [
        "zh",
        2,
        3,
        2,
        2,
        1,
    ]
    assert (hobby["kept_low"], hobby["kept_high"]) == pytest.approx(proportion_confint(2, 3, method="wilson"), abs=2e-4)
    assert (found["goal.goal1"]["kept_share"], found["goal.goal1"]["unchanged_share"]) == (0, 0)
