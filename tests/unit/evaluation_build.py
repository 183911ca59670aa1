"""A build with the rows a test wants, and runs of the evaluation stages on scripted models over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tasks.foundation.ids import digest
from tasks.foundation.llm.providers.scripted import Scripted, from_schema
from tasks.foundation.llm.request import ProviderCall
from tasks.foundation.run import stage_run as stage_run_module
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.stage import Prepared, Stage
from tasks.foundation.store.commits import Commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import open_views
from tasks.foundation.tables import Row
from tasks.foundation.tables.dialogues import AwarenessItem, InteractionEpisode
from tasks.foundation.tables.evaluation import ChatSeed, Conversation, ConversationTurn
from tasks.foundation.tables.personas import PersonaCandidate
from tasks.foundation.tables.types import is_optional
from tests.fakes.scripted import ScriptedProvider

QUIET = ("llm.retry_attempts=1", "llm.retry_base_seconds=0")


@dataclass
class Models:
    """All scripted models at once. `answer` gives a reply, an exception, or None for one made from the schema."""

    answer: Callable[[ProviderCall], Scripted | None] = lambda call: None
    calls: list[ProviderCall] = field(default_factory=list)

    def __call__(self, call: ProviderCall) -> Scripted:
        self.calls.append(call)
        answer = self.answer(call)
        return from_schema(call) if answer is None else answer


def texts(call: ProviderCall) -> str:
    """Everything a model is shown, the schema's wording aside."""
    return "\n".join(message.content for message in call.messages)


def use(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = stage_run_module.Engine

    def with_models(*args: Any, **kwargs: Any) -> Any:
        return engine(*args, **{**kwargs, "providers": {"scripted": ScriptedProvider(models)}})

    monkeypatch.setattr(stage_run_module, "Engine", with_models)


@dataclass
class Bench:
    """One build in a folder of its own, made with `settings`."""

    folder: Path
    settings: tuple[str, ...] = ()

    def workspace(self, *overrides: str) -> Workspace:
        return Workspace.open("test", (*QUIET, *self.settings, *overrides), Layout(self.folder / "artifacts"))

    async def give(self, stage: str, rows: Mapping[str, Sequence[Row]], member: str | None = None) -> None:
        """Commit `rows` as if that stage had made them."""
        plain = {table: [row.model_dump(mode="json") for row in each] for table, each in rows.items()}
        fake = Stage(
            name=stage,
            reads=(),
            prepare=lambda context: Prepared((), rows),
            prepared=tuple(rows),
            files=lambda settings: [digest(plain)],
        )
        await self.run(fake, member)

    async def run(self, stage: Stage, member: str | None, *overrides: str) -> Commit | None:
        """One run; None when it was up to date. The views are made when they are asked for, not after every commit."""
        workspace = self.workspace(*overrides)
        without_views = patch.object(stage_run_module, "rebuild_views")
        with without_views, StageRun.open(stage, workspace, "b1", member) as run:
            try:
                if run.up_to_date:
                    return None
                run.prepare()
                for shard in run.shards:
                    await run.work(shard)
                return run.commit()
            finally:
                await run.close()
                workspace.close()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        with open_views(self.workspace().layout) as connection:
            found = connection.execute(sql)
            names = [column[0] for column in found.description or ()]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def item(task: Any, gold: str, language: Any = "en", **changes: Any) -> AwarenessItem:
    utterance = {"turn_index": 2, "utterance_text": "No new one."} if task == "utterance" else {}
    plain: dict[str, Any] = {
        "item_id": f"item_{task}_{language}",
        "task": task,
        "language": language,
        "dialogue_id": "dialogue_1",
        "dialogue_text": "Ada: The oven is broken.\nBen: No new one.",
        "turn_index": None,
        "utterance_text": None,
        "gold": gold,
        "source": "build",
    }
    return AwarenessItem(**{**plain, **utterance, **changes})


def episode(number: int = 1, **changes: Any) -> InteractionEpisode:
    plain: dict[str, Any] = {
        "episode_id": f"episode_{number}",
        "language": "en",
        "dialogue_id": f"dialogue_{number}",
        "speaker1": "Ada Keller",
        "speaker2": "Ben Ruiz",
        "background1": "Name: Ada Keller\nOccupation: baker",
        "background2": "Name: Ben Ruiz\nOccupation: dealer in ovens",
        "goal1": "have the old oven mended",
        "goal2": "sell a new oven",
        "goal_type": "negotiation",
        "topic": "a broken oven",
        "time": "early morning",
        "location": "a bakery",
        "talkway": "phone call",
        "relationship": "customer and dealer",
        "familiarity": 4,
        "source": "build",
    }
    return InteractionEpisode(**{**plain, **changes})


def persona(number: int = 1) -> PersonaCandidate:
    absent = {name: None for name, info in PersonaCandidate.model_fields.items() if is_optional(info.annotation)}
    return PersonaCandidate(
        persona_id=f"persona_{number}",
        pool="p",
        source_key=str(number),
        language="en",
        description=f"A retired pilot, number {number}, who keeps bees.",
        topic_tags=[],
        hobbies=[],
        token_count=9,
        stratum="unknown × unknown",
        licence="x",
        raw="{}",
        **absent,  # type: ignore[arg-type]
    )


def seed(number: int = 1) -> ChatSeed:
    return ChatSeed(
        chat_seed_id=f"seed_{number}",
        pool="p",
        rank=number,
        persona_id=f"persona_{number}",
        language="en",
        topic="bees",
        initial_emotion="Anxiety",
        initial_explicit_intent="Seeking Advice",
        initial_latent_intent="Need for Security",
        final_intent="decide whether to move the hives before winter",
        first_query="Should I move my hives?",
        error=None,
    )


def conversation(
    name: str, answers: Sequence[str | None], seed_number: int = 1, **changes: Any
) -> tuple[Conversation, list[ConversationTurn]]:
    """A conversation with these answers; user turns and labels are marked by their number."""
    plain: dict[str, Any] = {
        "conversation_id": name,
        "chat_seed_id": f"seed_{seed_number}",
        "pool": "p",
        "target": "scripted-c",
        "simulator": "scripted-b",
        "sample": 0,
        "persona_to_target": "none",
        "protocol": "max_turns=4",
        "t_actual": len(answers),
        "stop_reason": "max_turns",
        "fault": "none",
        "final_user_text": "Thank you, that is it.",
        "final_progress": "achieved",
        "final_label_reasks": 0,
        "final_role_breaks": 0,
        "final_guards": [],
    }
    turns = [
        ConversationTurn(
            conversation_id=name,
            turn_index=turn,
            user_text=f"User words {turn}.",
            gold_explicit="Seeking Recommendation",
            gold_latent="Finding Meaning",
            gold_emotion="Loneliness",
            progress="in_progress",
            predicted_explicit="Decision Support",
            predicted_latent="Emotional Relief",
            predicted_emotion="Disappointment",
            perception_fault=None,
            assistant_text=answer,
            label_reasks=0,
            role_breaks=0,
            user_guards=[],
            answer_guards=[],
        )
        for turn, answer in enumerate(answers, start=1)
    ]
    return Conversation(**{**plain, **changes}), turns
