"""Seeds: one request a persona, labels of the taxonomies, and what becomes of a seeder's failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.chatseeds.prompts import SEED, make_seed_inputs, make_seed_reply
from tasks.chatseeds.task import STAGE, seed_id
from tasks.foundation.errors import ModelError, TooManyFailures
from tasks.foundation.llm.reply import schema_of
from tasks.foundation.llm.request import ProviderCall
from tasks.foundation.run import stage_run as stage_run_module
from tasks.foundation.run.context import Workspace
from tasks.foundation.settings import load_settings
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import open_views
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.texts.replies import Manner, bind
from tests.fakes.scripted import ScriptedProvider
from tests.unit.conversation_rows import PERSONA, persona, pool_row, run, stage_of

POOLS = ("nemotron_usa", "personamem_v2")
PERSONAS = stage_of(
    "personas",
    {
        "persona_candidates": [persona(number, pool) for pool in POOLS for number in range(4)],
        "persona_pool": [pool_row(number, pool) for pool in POOLS for number in range(4)],
    },
)
REPLY = {
    "topic": "the workshop",
    "final_intent": "The user wants a plan.",
    "initial_emotion": "Anxiety",
    "initial_latent_intent": "Need for Autonomy",
    "initial_explicit_intent": "Venting",
    "first_query": "My sister called again.",
}


class Seeder:
    """Answers every persona; those named in `failing` as told."""

    def __init__(self) -> None:
        self.calls: list[ProviderCall] = []
        self.failing: dict[str, Any] = {}

    def __call__(self, call: ProviderCall) -> Any:
        self.calls.append(call)
        for mark, failure in self.failing.items():
            if mark in call.messages[1].content:
                return failure
        return json.dumps(REPLY)


@pytest.fixture
def seeder(monkeypatch: pytest.MonkeyPatch) -> Seeder:
    seeder, engine = Seeder(), stage_run_module.Engine
    monkeypatch.setattr(stage_run_module, "rebuild_views", lambda layout: None)
    monkeypatch.setattr(
        stage_run_module,
        "Engine",
        lambda *a, **k: engine(*a, **{**k, "providers": {"scripted": ScriptedProvider(seeder)}}),
    )
    return seeder


@pytest.fixture
def workspace_of(tmp_path: Path) -> Callable[..., Workspace]:
    def make(*overrides: str) -> Workspace:
        quiet = ("llm.retry_attempts=1", "llm.max_reasks=1", "chatseeds.per_pool=3", "run.rows_in_flight=1")
        return Workspace.open("test", (*quiet, *overrides), Layout(tmp_path / "artifacts"))

    return make


def seeds(workspace: Workspace) -> list[tuple[Any, ...]]:
    with open_views(workspace.layout) as connection:
        return connection.execute("select pool, rank, topic, error from chat_seeds order by pool, rank").fetchall()


async def test_the_first_ranks_of_every_pool_get_a_seed_each(seeder: Seeder, workspace_of: Any) -> None:
    await run(PERSONAS, workspace_of())
    commit = await run(STAGE, workspace := workspace_of())
    assert commit is not None
    # 2 pools × 4 personas, of which rank 3 is beyond per_pool = 3
    assert commit.accounting.to_json() | {"failed": {}} == {
        "n_in": 8,
        "n_produced": 6,
        "n_filtered": 2,
        "n_failed": 0,
        "filtered": {"not_sampled": 2},
        "failed": {},
    }
    assert [row[:2] for row in seeds(workspace)] == [(pool, rank) for pool in POOLS for rank in range(3)]
    assert len(seeder.calls) == 6
    assert {call.messages[1].content.count(PERSONA) for call in seeder.calls} == {1}


async def test_a_reply_that_stays_unreadable_makes_a_row_with_an_error_and_no_content(
    seeder: Seeder, workspace_of: Any
) -> None:
    seeder.failing = {"personamem_v2 1": json.dumps(REPLY | {"initial_emotion": "Joyful"})}
    await run(PERSONAS, workspace_of())
    commit = await run(STAGE, workspace := workspace_of())
    assert commit is not None and not commit.partial
    assert (commit.accounting.n_produced, commit.accounting.filtered) == (5, {"not_sampled": 2, "error": 1})
    assert len(seeder.calls) == 7, "it was asked again once"
    (bad,) = [row for row in seeds(workspace) if row[3] is not None]
    assert bad[:3] == ("personamem_v2", 1, None)
    assert bad[3].startswith("invalid: ") and "initial_emotion" in bad[3]


async def test_a_failure_that_may_pass_makes_no_row_and_is_asked_again_by_the_next_run(
    seeder: Seeder, workspace_of: Any
) -> None:
    seeder.failing = {"nemotron_usa 0": ModelError("connection", "no route")}
    await run(PERSONAS, workspace_of())
    first = await run(STAGE, workspace_of())
    assert first is not None and first.partial and first.rows("chat_seeds") == 5
    seeder.failing, seeder.calls = {}, []
    second = await run(STAGE, workspace_of())
    assert second is not None and not second.partial and second.rows("chat_seeds") == 6
    assert len(seeder.calls) == 1
    assert await run(STAGE, workspace_of()) is None


async def test_too_many_errors_stop_the_stage_and_name_the_seeder(seeder: Seeder, workspace_of: Any) -> None:
    seeder.failing = {"nemotron_usa": "no idea", "personamem_v2 2": "no idea"}
    await run(PERSONAS, workspace_of())
    with pytest.raises(TooManyFailures, match=r"'scripted-b' gave no usable seed for 4 of 6 .*chatseeds\.seeder"):
        await run(STAGE, workspace_of())
    calls = len(seeder.calls)
    commit = await run(STAGE, workspace_of("chatseeds.max_failure_rate=1.0"))
    assert commit is not None and commit.accounting.filtered["error"] == 4
    assert len(seeder.calls) == calls, "raising the limit pays for nothing"


async def test_the_language_of_the_settings_decides_the_prompt(seeder: Seeder, workspace_of: Any) -> None:
    await run(PERSONAS, workspace_of())
    await run(STAGE, workspace := workspace_of("chatseeds.language=zh"))
    assert "寻求建议：为自己的事问该怎么办" in seeder.calls[0].messages[0].content
    with open_views(workspace.layout) as connection:
        assert connection.execute("select distinct language from chat_seeds").fetchall() == [("zh",)]


def test_the_seeder_sees_every_label_and_may_use_no_other() -> None:
    limits = load_settings("test").text_limits
    for language in LANGUAGES:
        system, user = SEED.render(language, make_seed_inputs(PERSONA, language))
        properties = schema_of(bind(make_seed_reply(), Manner(limits, language)))["properties"]
        for name, field in [("user_emotion", "emotion"), ("latent_intent",) * 2, ("explicit_intent",) * 2]:
            labels = taxonomy(name).labels
            assert all(label.described(language) in system.content for label in labels)
            assert properties[f"initial_{field}"]["enum"] == [label.shown(language) for label in labels]
        assert PERSONA in user.content and PERSONA not in system.content


def test_a_seed_is_known_by_its_persona_alone() -> None:
    assert seed_id("persona_1") == seed_id("persona_1") != seed_id("persona_2")
    assert seed_id("persona_1").startswith("chatseed_")
