"""A tiny build that keeps every claim of sql/checks, and what breaks each of them. Rows are plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa

from tasks.foundation.store.views import duckdb_type, shared_macros, view_sql
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.operations import STAGE_RUNS

Rows = dict[str, list[dict[str, Any]]]

NOON = datetime(2026, 5, 21, 12, tzinfo=UTC)
LATER = datetime(2026, 5, 21, 13, tzinfo=UTC)

_PLAIN: dict[str, Any] = {"string": "x", "int32": 1, "int64": 1, "float": 0.5, "double": 0.5, "bool": False}


def good() -> Rows:
    """One persona, two characters, one scene, pairing and dialogue of two turns, reviewed and voted on."""
    label = {"dialogue_id": "d1", "element": "goal.goal1"}
    other = {"dialogue_id": "d1", "element": "persona.1.hobby"}
    third = {"dialogue_id": "d1", "element": "scene.topic"}
    return {
        "stage_runs": [
            _stage("personas", n_in=3, n_produced=1, n_filtered=1, n_failed=1),
            _stage("scenes", n_in=2, n_produced=1, n_filtered=1, n_failed=0),
        ],
        "persona_candidates": [
            _row("persona_candidates", persona_id="p1", pool="a", token_count=3, stratum="s"),
            _row("persona_candidates", persona_id="p9", pool="a", token_count=3, stratum="t"),
        ],
        "persona_pool": [_row("persona_pool", pool="a", rank=0, persona_id="p1", stratum="s", quota=1)],
        "characters": [
            _row("characters", character_id="c1", language="en", persona_id="p1", age=30, age_band="Adulthood"),
            _row("characters", character_id="c2", language="en", persona_id=None, age=70, age_band="Advanced age"),
        ],
        "duplicates": [
            _row(
                "duplicates",
                table_name="persona_candidates",
                row_id="p9",
                duplicate_of="p1",
                method="embedding",
                cosine=0.9,
            ),
            _row(
                "duplicates", table_name="seed_dialogues", row_id="s1#2", duplicate_of="s1", method="exact", cosine=None
            ),
            _row("duplicates", table_name="characters", row_id="c9", duplicate_of="c1", method="minhash", cosine=None),
        ],
        "diversity": [_row("diversity", table_name="characters", language="en", n=2)],
        "seed_dialogues": [
            _row("seed_dialogues", seed_id="s1", language="en", turns=[{"speaker": "A", "text": "hi"}], turn_count=1)
        ],
        "scenes": [_row("scenes", scene_id="sc1", seed_id="s1", language="en", goal_type="advice")],
        "pairings": [
            _row("pairings", pairing_id="pa1", scene_id="sc1", character1_id="c1", character2_id="c2", language="en")
        ],
        "conflicts": [
            _row(
                "conflicts",
                pairing_id="pa1",
                is_coherent=True,
                relationship="friends",
                familiarity=6,
                talkway="phone call",
                selected=True,
                selection_rank=0,
            )
        ],
        "dialogues": [_row("dialogues", dialogue_id="d1", pairing_id="pa1", language="en", turn_count=2)],
        "utterances": [
            _row("utterances", dialogue_id="d1", turn_index=1, speaker=1, text="hello"),
            _row("utterances", dialogue_id="d1", turn_index=2, speaker=2, text="hello to you"),
        ],
        "reviews": [
            _row("reviews", **label, annotator="m1", family="f1", action="edit", proposed='"y"'),
            _row("reviews", **label, annotator="m2", family="f2", action="keep", proposed=None),
            _row("reviews", **other, annotator="m1", family="f1", action="reject", proposed=None),
            _row("reviews", **other, annotator="m2", family="f2", action=None, proposed=None),
            _row("reviews", **third, annotator="m1", family="f1", action="reject", proposed=None),
            _row("reviews", **third, annotator="m2", family="f2", action="keep", proposed=None),
        ],
        "votes": [
            _row("votes", **label, voter=voter, candidates='[{"value": "x"}, {"value": "y"}]', candidate=1)
            for voter in ("m1", "m2", "m3")
        ],
        "vote_repeats": [
            _row("vote_repeats", **label, voter="m1", candidates='[{"value": "y"}, {"value": "x"}]', candidate=0)
        ],
        "verdicts": [
            _row(
                "verdicts", **label, outcome="unanimous", value='"y"', changed=True, votes_for=3, votes_cast=3, panel=3
            ),
            _row("verdicts", **other, outcome="rejected", value=None, votes_for=2, votes_cast=3, panel=3),
            _row("verdicts", **third, outcome="manual", value='"x"', pending=True, votes_for=1, votes_cast=2, panel=3),
        ],
        "awareness_items": [
            _item("goal", gold='{"goal": {"goal1": "y"}}'),
            _item("persona", gold='{"persona": {"participant1": {"name": "Ann"}}}'),
            _item("utterance", gold='{"intent": "greet"}', turn_index=1, utterance_text="hello"),
        ],
        "interaction_episodes": [
            _row(
                "interaction_episodes", episode_id="e1", dialogue_id="d1", language="en", familiarity=6, source="build"
            )
        ],
        **_evaluation(),
        "rejects": [_row("rejects", stage="personas", row_key="file:3", kind="parse", reason="not JSON")],
        "llm_calls": [
            _row(
                "llm_calls",
                request_id="r1",
                finish_reason="stop",
                error_kind=None,
                prompt_tokens=9,
                cached_tokens=0,
                completion_tokens=5,
                reasoning_tokens=0,
            ),
            _row("llm_calls", request_id="r3", stage="awareness", row_key="i-goal/m3/0", alias="m3", from_cache=False),
            _row(
                "llm_calls",
                request_id="r2",
                finish_reason=None,
                error_kind="timeout",
                prompt_tokens=None,
                cached_tokens=None,
                completion_tokens=None,
                reasoning_tokens=None,
                cost_usd=None,
            ),
        ],
        "replies": [
            _row("replies", request_id="r1", prompt="[]", reply="hi"),
            _row("replies", request_id="r2", reply=None),
        ],
    }


def _evaluation() -> Rows:
    """One answered turn of one conversation and one interaction, each judged, and what metrics make of them."""
    turn = {"conversation_id": "v1", "turn_index": 1}
    whole = dict.fromkeys(("pool", "language", "target", "simulator", "judge", "partner", "goal_type", "slice"))
    cells: list[dict[str, Any]] = [
        {"benchmark": "demo", "target": "m3", "metric": "interaction"},
        {"benchmark": "demo", "target": "m3", "metric": "interaction", "judge": "m1", "value": 8.0, "n": 4},
        {"benchmark": "demo", "target": "m3", "metric": "interaction", "goal_type": "advice"},
        {"benchmark": "eyt", "target": "m3", "metric": "empathy_weighted"},
        {"benchmark": "eyt", "target": "m3", "metric": "empathy_weighted", "slice": '{"alpha":0.05}'},
        {"benchmark": "eyt", "target": "m3", "metric": "empathy_unweighted", "slice": '{"turn":1}'},
        {"benchmark": "eyt", "target": "m3", "metric": "empathy_early_minus_late"},
        {"benchmark": "eyt", "target": "m3", "metric": "latent_accuracy", "slice": '{"label":"Curiosity"}'},
        {"benchmark": "eyt", "metric": "simulator_mattr", "simulator": "m2"},
        {"benchmark": "eyt", "metric": "latent_accuracy", "slice": '{"family":"f1"}'},
        {"benchmark": "eyt", "target": "m3", "metric": "drift_latent", "slice": '{"turn":1}'},
        {"benchmark": "eyt", "target": "m3", "metric": "explicit_accuracy", "value": 1.0, "n": 1},
        {"benchmark": "eyt", "target": "m3", "metric": "latent_accuracy", "value": 1.0, "n": 1},
        {"benchmark": "eyt", "target": "m3", "metric": "emotion_accuracy", "value": 1.0, "n": 1},
        {"benchmark": "eyt", "target": "m3", "metric": "drift_explicit", "value": 0.5, "n": 1},
        {"benchmark": "eyt", "target": "m3", "metric": "drift_pair", "value": 0.5, "n": 1},
        {"benchmark": "eyt", "target": "m3", "metric": "satisfaction", "judge": "m1", "value": 75.0, "n": 1},
        {"benchmark": "eyt", "target": "m3", "metric": "drift_latent", "value": 0.25, "n": 1, "unit": "cosine"},
        {"benchmark": "eyt", "target": "m3", "metric": "ficr", "judge": "m1", "value": 1.0, "n": 1},
        {"benchmark": "eyt", "target": "m3", "metric": "empathy_unweighted", "judge": "m1", "value": 50.0, "n": 1},
        {"benchmark": "eyt", "target": "m3", "metric": "persona_alignment_unweighted", "judge": "m1", "value": 50.0},
        {"benchmark": "eyt", "target": "m3", "metric": "anthropomorphic_unweighted", "judge": "m1", "value": 50.0},
        {
            "benchmark": "demo",
            "target": "m3",
            "metric": "awareness",
            "judge": "m1",
            "value": 7.5,
            "n": 2,
            "unit": "0-10",
        },
        {"benchmark": "demo", "target": "m3", "metric": "awareness", "judge": "m4", "value": 5.5, "n": 2},
    ]
    for pool in ("a", "b"):
        cells.append({"benchmark": "eyt", "target": "m3", "metric": "empathy_weighted", "pool": pool})
        cells += [
            {"benchmark": "eyt", "target": "m3", "metric": each, "pool": pool} for each in ("ficr", "drift_latent")
        ]
    none = {"benchmark": "eyt", "metric": "empathy_weighted", "target_a": "m3", "target_b": "m3"}
    scored = {"unscored_kind": None, "scored_by": "judge"}
    dimensions = dict.fromkeys(("goal_achievement", "believability", "skillfulness", "realistic"), 8)
    return {
        "awareness_predictions": [_row("awareness_predictions", item_id="i-goal", target="m3", sample=0)],
        "awareness_scores": [
            _row(
                "awareness_scores",
                item_id="i-goal",
                target="m3",
                sample=0,
                judge="m1",
                accuracy=8,
                hallucination=7,
                **scored,
            ),
            _row(
                "awareness_scores",
                item_id="i-goal",
                target="m3",
                sample=0,
                judge="m4",
                accuracy=4,
                hallucination=7,
                **scored,
            ),
        ],
        "chat_seeds": [_row("chat_seeds", chat_seed_id="cs1", pool="a", persona_id="p1", language="en", error=None)],
        "conversations": [
            _row(
                "conversations",
                conversation_id="v1",
                chat_seed_id="cs1",
                pool="a",
                target="m3",
                t_actual=1,
                stop_reason="max_turns",
                fault="none",
            )
        ],
        "conversation_turns": [_row("conversation_turns", **turn, perception_fault=None)],
        "turn_drifts": [_row("turn_drifts", **turn, drift_latent=0.25)],
        "turn_judgements": [_row("turn_judgements", **turn, judge="m1", **scored)],
        "final_intent_judgements": [
            _row("final_intent_judgements", conversation_id="v1", judge="m1", completed=True, satisfaction=4, **scored)
        ],
        "interactions": [
            _row(
                "interactions",
                interaction_id="n1",
                episode_id="e1",
                target="m3",
                turn_count=1,
                stop_reason="ended",
                fault="none",
            )
        ],
        "interaction_turns": [_row("interaction_turns", interaction_id="n1", turn_index=1, speaker=1, text="hello")],
        "interaction_scores": [_row("interaction_scores", interaction_id="n1", judge="m1", **dimensions, **scored)],
        "metrics": [
            _row("metrics", **{**whole, "value": 0.5, "worst_low": None, "worst_high": None, **cell}) for cell in cells
        ],
        "comparisons": [
            _row(
                "comparisons", **{**none, "kind": kind, "pool": pool, "pool_b": pool_b}, language=None, is_primary=True
            )
            | (dict.fromkeys(("p_holm", "p_holm_least")) if kind == "pairs" else {})
            for kind, pool, pool_b in (
                ("best", "x", None),
                ("pairs", None, None),
                ("judges", "a", None),
                ("thinking", None, None),
                ("pools", "a", "b"),
            )
        ],
        "user_likeness": [
            _row("user_likeness", simulator="m2", measure=measure, edges=[-0.5, 0.5, 1.5], simulated=[0.2, 0.8])
            | {"people": [0.9, 0.1]}
            for measure in ("polite", "question")
        ],
        "agreement": [
            _row("agreement", scope="judges"),
            _row("agreement", scope="judges", category="order of targets, ficr, a", statistic="kendall"),
        ],
    }


def tables_of(rows: Rows) -> duckdb.DuckDBPyConnection:
    """A database in memory that has every table the views have, filled with `rows`."""
    connection = duckdb.connect()
    for name, table in TABLES.items():
        filled = pa.Table.from_pylist(rows.get(name, []), schema=_nullable(table.schema))  # noqa: F841 - read by name
        connection.execute(f"create table {name}_rows as select 'b1' as build, * from filled")
    for name, table in sorted(TABLES.items(), key=lambda each: each[1].beside is not None):
        connection.execute(view_sql(table, f"select * from {name}_rows"))
    for macro in shared_macros():
        connection.execute(macro)
    columns = ", ".join(f"{field.name} {duckdb_type(field.type)}" for field in STAGE_RUNS.schema)
    connection.execute(f"create table stage_runs (build varchar, {columns})")
    for run in rows.get("stage_runs", []):
        connection.execute(
            f"insert into stage_runs ({', '.join(run)}) values ({', '.join('?' * len(run))})", list(run.values())
        )
    return connection


def _nullable(schema: pa.Schema) -> pa.Schema:
    """Planted rows may break any declaration, that of a value that must be there too."""
    return pa.schema([field.with_nullable(True) for field in schema])


def _row(table: str, **values: Any) -> dict[str, Any]:
    """A row with the given values and some value in every other column."""
    filled = {field.name: _some(field.type) for field in TABLES[table].schema}
    assert not set(values) - set(filled), f"{table} has no such columns: {set(values) - set(filled)}"
    return {**filled, **values}


def _some(type_: pa.DataType) -> Any:
    if pa.types.is_list(type_):
        return []
    if pa.types.is_struct(type_):
        return {field.name: _some(field.type) for field in type_}
    if pa.types.is_timestamp(type_):
        return NOON
    return _PLAIN[str(type_)]


def _stage(stage: str, **counts: int) -> dict[str, Any]:
    reasons = {
        "filtered_by": _reasons("near", counts["n_filtered"]),
        "failed_by": _reasons("schema", counts["n_failed"]),
    }
    return {"build": "b1", "stage": stage, "started_at": NOON, "ended_at": LATER, **counts, **reasons}


def _reasons(reason: str, count: int) -> str:
    return json.dumps({reason: count} if count else {})


def _item(task: str, **values: Any) -> dict[str, Any]:
    place: Mapping[str, Any] = {"turn_index": None, "utterance_text": None, **values}
    return _row(
        "awareness_items", item_id=f"i-{task}", task=task, dialogue_id="d1", language="en", source="build", **place
    )
