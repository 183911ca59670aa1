"""Every check finds nothing in a build that is right, and something where its claim is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows.chain.checks import CHECKS, check_files, run_check, run_checks
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import open_views
from tasks.foundation.tables import TABLES
from tests.contract.sql_rows import NOON, Rows, good, tables_of

Plant = Callable[[Rows], object]


def change(table: str, place: int = 0, **values: Any) -> Plant:
    """Give one row other values."""
    return lambda rows: rows[table][place].update(values)


def again(table: str, place: int = 0, **values: Any) -> Plant:
    """Add a copy of one row, with some values changed."""
    return lambda rows: rows[table].append({**rows[table][place], **values})


def without(table: str, place: int = 0) -> Plant:
    """Take one row away."""
    return lambda rows: rows[table].pop(place)


PLANTED: dict[str, Plant] = {
    "awareness_items__dialogue_exists": change("awareness_items", dialogue_id="d404"),
    "awareness_items__gold_has_no_rejected": change(
        "awareness_items", 1, gold='{"persona": {"participant1": {"hobby": "chess"}}}'
    ),
    "awareness_items__turn_only_for_utterances": change("awareness_items", 0, turn_index=1),
    "awareness_predictions__item_exists": change("awareness_predictions", item_id="i404"),
    "awareness_scores__null_only_when_unscored": change("awareness_scores", hallucination=None),
    "awareness_scores__prediction_exists": change("awareness_scores", sample=1),
    "characters__age_in_band": change("characters", age=40),
    "characters__persona_exists": change("characters", persona_id="p404"),
    "chat_seeds__complete_or_error": change("chat_seeds", final_intent=None),
    "comparisons__only_primary_ones_are_corrected": change("comparisons", is_primary=False),
    "comparisons__p_values_are_probabilities": change("comparisons", p_holm=0.1),
    "conflicts__pairing_exists": change("conflicts", pairing_id="pa404"),
    "conflicts__selected_has_relationship": change("conflicts", relationship=None),
    "conflicts__selection_ranks_are_gapless": change("conflicts", selection_rank=1),
    "conversation_turns__turns_are_gapless": again("conversation_turns", turn_index=3),
    "conversations__answered_turns_match": change("conversation_turns", assistant_text=None),
    "conversations__fault_agrees_with_stop": change("conversations", fault="target"),
    "conversations__seed_is_usable": change("chat_seeds", error="refused: no"),
    "dialogues__pairing_was_selected": change("conflicts", selected=False),
    "dialogues__turn_count_matches": change("dialogues", turn_count=3),
    "diversity__measured_over_what_is_there": without("characters"),
    "duplicates__cosine_only_when_embedded": change("duplicates", cosine=None),
    "duplicates__dropped_rows_are_not_used": again("persona_pool", persona_id="p9", rank=1, stratum="t"),
    "duplicates__kept_row_exists": change("duplicates", 1, duplicate_of="s404"),
    "duplicates__kept_row_was_kept": again("duplicates", 2, row_id="c8", duplicate_of="c9"),
    "final_intent_judgements__conversation_exists": change("final_intent_judgements", conversation_id="v404"),
    "final_intent_judgements__null_only_when_unscored": change("final_intent_judgements", unscored_kind="parse"),
    "interaction_episodes__dialogue_exists": change("interaction_episodes", language="zh"),
    "interaction_episodes__familiarity_range": change("interaction_episodes", familiarity=11),
    "interaction_scores__interaction_exists": change("interaction_scores", interaction_id="n404"),
    "interaction_scores__null_only_when_unscored": change("interaction_scores", realistic=None),
    "interaction_turns__turns_are_gapless": change("interaction_turns", turn_index=2),
    "interactions__episode_exists": change("interactions", episode_id="e404"),
    "interactions__fault_agrees_with_stop": change("interactions", stop_reason="fault"),
    "interactions__turn_count_matches": change("interactions", turn_count=4),
    "conversations__void_ones_are_not_judged": change("conversations", fault="simulator"),
    "llm_calls__no_silent_end": change("llm_calls", finish_reason=None),
    "llm_calls__reply_is_kept": without("replies"),
    "llm_calls__usage_is_not_negative": change("llm_calls", cached_tokens=10),
    "metrics__accuracies_are_those_of_the_turns": change("conversation_turns", predicted_explicit="other"),
    "metrics__demo_scores_are_those_of_the_judge": change("awareness_scores", accuracy=9),
    "metrics__dimensions_are_those_of_the_turns": change("turn_judgements", empathy_support=1.0),
    "metrics__drifts_are_those_of_the_turns": change("turn_drifts", drift_latent=0.5),
    "metrics__final_intents_are_those_of_the_judgements": change("final_intent_judgements", completed=False),
    "metrics__interval_is_ordered": change("metrics", ci_low=0.9),
    "metrics__judge_has_judged": again("metrics", judge="m9", metric="ficr", n=3),
    "metrics__target_has_rows": again("metrics", target="m9", n=3),
    "metrics__worst_cases_hold_the_value": change("metrics", worst_low=0.0, worst_high=0.25),
    "metrics__value_on_its_scale": change("metrics", unit="share", value=1.5),
    "metrics__value_rests_on_something": change("metrics", n=0),
    "pairings__characters_differ": change("pairings", character2_id="c1"),
    "pairings__languages_agree": change("characters", 1, language="zh"),
    "persona_candidates__token_count_positive": change("persona_candidates", token_count=0),
    "persona_pool__no_near_pair_recorded": again("persona_pool", persona_id="p9", rank=1, stratum="t"),
    "persona_pool__no_persona_twice": again("persona_pool", rank=1),
    "persona_pool__persona_exists": change("persona_pool", pool="b"),
    "persona_pool__quotas_are_proportional": change("persona_pool", stratum="t"),
    "persona_pool__quotas_match": change("persona_pool", quota=2),
    "persona_pool__ranks_are_gapless": change("persona_pool", rank=1),
    "persona_pool__stratum_is_the_personas": change("persona_pool", stratum="t"),
    "rejects__failures_are_counted": without("rejects"),
    "rejects__reason_given": change("rejects", reason=" "),
    "reviews__proposed_only_with_edit": change("reviews", action=None),
    "reviews__two_families_look_at_each_label": change("reviews", 1, family="f1"),
    "scenes__goal_type_known": change("scenes", goal_type="Advice"),
    "scenes__seed_exists": change("scenes", seed_id="s404"),
    "seed_dialogues__turn_count_matches": change("seed_dialogues", turn_count=2),
    "stage_runs__accounting_balances": change("stage_runs", n_failed=2, failed_by='{"schema": 2}'),
    "stage_runs__reasons_add_up": change("stage_runs", failed_by='{"schema": 2}'),
    "stage_runs__ended_after_started": change("stage_runs", ended_at=NOON.replace(hour=11)),
    "turn_drifts__turn_exists": change("turn_drifts", turn_index=2),
    "turn_judgements__null_only_when_unscored": change("turn_judgements", persona_memory=None),
    "turn_judgements__scores_on_the_scale": change("turn_judgements", empathy_support=0.7),
    "turn_judgements__turn_exists": change("turn_judgements", turn_index=2),
    "utterances__speakers_alternate": change("utterances", 1, speaker=1),
    "utterances__text_is_not_empty": change("utterances", text=" "),
    "utterances__turns_are_gapless": change("utterances", 1, turn_index=3),
    "verdicts__majorities_are_strict": change("verdicts", 1, votes_for=1),
    "verdicts__one_per_label": again("verdicts"),
    "verdicts__pending_only_when_manual": change("verdicts", pending=True),
    "verdicts__value_null_only_when_rejected": change("verdicts", 1, outcome="manual"),
    "vote_repeats__vote_was_cast": change("vote_repeats", voter="m9"),
    "votes__candidate_in_range": change("votes", candidate=2),
    "votes__label_was_reviewed": change("votes", element="goal.goal2"),
}


def found_by(name: str, rows: Rows) -> int:
    with tables_of(rows) as connection:
        return run_check(connection, CHECKS / f"{name}.sql").rows


def test_every_check_has_a_planted_violation() -> None:
    assert sorted(PLANTED) == [file.stem for file in check_files()]


def test_no_check_finds_anything_in_a_build_that_is_right() -> None:
    with tables_of(good()) as connection:
        assert [outcome for outcome in run_checks(connection) if outcome.rows] == []


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_check_finds_what_breaks_its_claim(name: str) -> None:
    rows = good()
    PLANTED[name](rows)
    assert found_by(name, rows) > 0


def test_a_turn_at_which_the_target_failed_is_wrong_and_one_lost_to_infrastructure_is_no_turn() -> None:
    name = "metrics__accuracies_are_those_of_the_turns"
    rows = good()
    again("conversation_turns", turn_index=2, perception_fault="timeout", predicted_explicit=None)(rows)
    assert found_by(name, rows) == 0
    change("conversations", fault="target")(rows)
    rows["conversation_turns"][1]["assistant_text"] = None
    assert found_by(name, rows) == 3
    for cell in rows["metrics"]:
        if cell["metric"].endswith("_accuracy") and cell["slice"] is None:
            cell.update(value=0.5, n=2)
    assert found_by(name, rows) == 0


def test_a_target_that_the_metrics_do_not_know_is_found_unless_there_are_none_yet() -> None:
    rows = good()
    change("conversations", target="m9")(rows)
    assert found_by("metrics__accuracies_are_those_of_the_turns", rows) == 3
    rows["metrics"] = []
    assert found_by("metrics__accuracies_are_those_of_the_turns", rows) == 0


def test_a_judgement_that_is_undecided_counts_as_not_completed() -> None:
    rows = good()
    change("final_intent_judgements", completed=None)(rows)
    assert found_by("metrics__final_intents_are_those_of_the_judgements", rows) == 1
    next(row for row in rows["metrics"] if row["metric"] == "ficr")["value"] = 0.0
    assert found_by("metrics__final_intents_are_those_of_the_judgements", rows) == 0


def test_a_label_without_a_verdict_is_found_too() -> None:
    rows = good()
    without("verdicts")(rows)
    assert found_by("verdicts__one_per_label", rows) == 1


def test_items_of_a_release_need_no_dialogues() -> None:
    rows = good() | {"dialogues": []}
    assert found_by("awareness_items__dialogue_exists", rows)
    rows["stage_runs"] = [{**rows["stage_runs"][0], "stage": "release"}]
    assert not found_by("awareness_items__dialogue_exists", rows)
    assert not found_by("interaction_episodes__dialogue_exists", rows)


def test_two_pool_members_that_say_the_same_are_found_without_a_record_too() -> None:
    rows = good()
    rows["persona_candidates"][1]["description"] = "y"
    again("persona_pool", persona_id="p9", rank=1, stratum="t")(rows)
    rows["duplicates"].pop(0)
    assert found_by("persona_pool__no_near_pair_recorded", rows) == 0
    rows["persona_candidates"][1]["description"] = rows["persona_candidates"][0]["description"]
    assert found_by("persona_pool__no_near_pair_recorded", rows) == 1


@pytest.mark.parametrize(("kept", "lost"), [("characters", "c1"), ("scenes", "sc1")])
def test_duplicates_of_designed_rows_name_one_that_is_there_and_are_not_there_themselves(kept: str, lost: str) -> None:
    rows = good()
    again("duplicates", 2, table_name=kept, row_id="x1", duplicate_of=lost)(rows)
    assert found_by("duplicates__kept_row_exists", rows) == found_by("duplicates__dropped_rows_are_not_used", rows) == 0
    again("duplicates", 2, table_name=kept, row_id=lost, duplicate_of="x404")(rows)
    assert found_by("duplicates__kept_row_exists", rows) == found_by("duplicates__dropped_rows_are_not_used", rows) == 1


def test_a_stratum_may_have_one_more_or_less_than_its_share_but_not_two() -> None:
    rows = good()
    rows["duplicates"].pop(0)
    for number in range(2, 6):  # six personas, three of each stratum
        again("persona_candidates", number % 2, persona_id=f"p{number}")(rows)
    assert found_by("persona_pool__quotas_are_proportional", rows) == 0  # one drawn: half a persona each
    again("persona_pool", persona_id="p2", rank=1)(rows)
    assert found_by("persona_pool__quotas_are_proportional", rows) == 2  # both of s, where each has a share of one


def test_every_check_runs_on_an_empty_store(tmp_path: Any) -> None:
    with open_views(Layout(tmp_path)) as connection:
        assert {outcome.rows for outcome in run_checks(connection)} == {0}


@pytest.mark.parametrize("file", check_files(), ids=lambda file: file.stem)
def test_a_check_is_named_for_a_table_and_its_claim(file: Any) -> None:
    table, _, claim = file.stem.partition("__")
    assert table in {*TABLES, "stage_runs"}
    assert claim


def test_the_goal_types_in_sql_are_those_of_the_taxonomy() -> None:
    text = (CHECKS / "scenes__goal_type_known.sql").read_text(encoding="utf-8")
    assert [label for label in taxonomy("goal_type").names if f"('{label}')" not in text] == []


def test_the_age_bands_in_sql_are_those_of_the_taxonomy() -> None:
    text = (CHECKS / "characters__age_in_band.sql").read_text(encoding="utf-8")
    for label in taxonomy("age_band").labels:
        assert f"('{label.name}', {label.low}, {label.high})" in text
