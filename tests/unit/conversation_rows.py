"""What the tests of chatseeds and conversation share: personas, seeds, the stages before, scripted roles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tasks.foundation.llm.request import ProviderCall, RawReply
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.stage import Prepared, Stage, StageContext
from tasks.foundation.store.commits import Commit
from tasks.foundation.tables import Row
from tasks.foundation.tables.evaluation import ChatSeed
from tasks.foundation.tables.personas import PersonaCandidate, PersonaPoolRow

TARGET, OTHER_TARGET, SIMULATOR = "scripted-c", "scripted-d", "scripted-b"
PERSONA = "Ada mends accordions in a harbour town and distrusts the sea."
FINAL_INTENT = "The user wants a plan for telling her sister that she will not sell the workshop."


def persona(number: int, pool: str = "nemotron_usa") -> PersonaCandidate:
    empty: dict[str, Any] = dict.fromkeys(PersonaCandidate.model_fields)
    lists = {"topic_tags": [], "hobbies": []}
    return PersonaCandidate.model_validate(
        {
            **empty,
            **lists,
            "persona_id": f"persona_{pool}_{number}",
            "pool": pool,
            "source_key": str(number),
            "language": "en",
            "description": f"{PERSONA} ({pool} {number})",
            "token_count": 12,
            "stratum": "unknown × unknown",
            "licence": "Apache-2.0",
            "raw": "{}",
        }
    )


def pool_row(number: int, pool: str = "nemotron_usa") -> PersonaPoolRow:
    return PersonaPoolRow(pool=pool, rank=number, persona_id=f"persona_{pool}_{number}", stratum="all", quota=1)


def seed(number: int, error: str | None = None, pool: str = "nemotron_usa", language: str = "en") -> ChatSeed:
    content: dict[str, Any] = {
        "topic": "the family workshop",
        "initial_emotion": "Anxiety",
        "initial_explicit_intent": "Venting",
        "initial_latent_intent": "Need for Autonomy",
        "final_intent": FINAL_INTENT,
        "first_query": f"My sister called again about the workshop. Day {number}.",
    }
    return ChatSeed(
        chat_seed_id=f"chatseed_{number}",
        pool=pool,
        rank=number,
        persona_id=f"persona_{pool}_{number}",
        language=language,  # type: ignore[arg-type]
        **(dict.fromkeys(content) if error else content),
        error=error,
    )


def stage_of(name: str, tables: Mapping[str, Iterable[Row]]) -> Stage:
    """A stage of this name that only writes the given rows."""
    rows = {table: list(some) for table, some in tables.items()}

    def prepare(context: StageContext) -> Prepared:
        return Prepared([], rows)

    return Stage(name=name, reads=(), prepare=prepare, prepared=tuple(rows))


def user_turn(text: str, progress: str = "in_progress", **labels: str) -> str:
    """A simulator's reply."""
    plain = {
        "progress": progress,
        "emotion": "Hope",
        "latent_intent": "Seeking Validation",
        "explicit_intent": "Planning",
        "user_text": text,
    }
    return json.dumps(plain | labels)


def labels(explicit: str = "Planning", latent: str = "Seeking Validation", emotion: str = "Hope") -> str:
    """A target's prediction."""
    return json.dumps({"explicit_intent": explicit, "latent_intent": latent, "emotion": emotion})


Reply = str | RawReply | Exception


class Roles:
    """Answers by the role that is asked: each role has a function of the call and of how often it was asked."""

    def __init__(
        self,
        simulate: Callable[[ProviderCall], Reply] = lambda call: user_turn(
            f"And then? {len(call.messages[1].content)}"
        ),
        perceive: Callable[[ProviderCall], Reply] = lambda call: labels(),
        answer: Callable[[ProviderCall], Reply] = lambda call: f"I see. {len(call.messages)} messages so far.",
    ) -> None:
        self.simulate, self.perceive, self.answer = simulate, perceive, answer
        self.calls: list[tuple[str, ProviderCall]] = []

    def __call__(self, call: ProviderCall) -> Reply:
        role = role_of(call)
        self.calls.append((role, call))
        return getattr(self, role)(call)

    def of(self, role: str) -> list[ProviderCall]:
        return [call for name, call in self.calls if name == role]


def role_of(call: ProviderCall) -> str:
    if call.schema is None:
        return "answer"
    return "simulate" if "user_text" in call.schema["properties"] else "perceive"


def shown(call: ProviderCall) -> str:
    """All that a request says."""
    return "\n".join(f"{part.role}: {part.content}" for part in call.messages)


async def run(
    stage: Stage, workspace: Workspace, member: str | None = None, build: str = "b1", force: bool = False
) -> Commit | None:
    """One run of a stage; None when it is up to date."""
    with StageRun.open(stage, workspace, build, member, force=force) as stage_run:
        try:
            if stage_run.up_to_date:
                return None
            stage_run.prepare()
            for shard in stage_run.shards:
                await stage_run.work(shard)
            return stage_run.commit()
        finally:
            await stage_run.close()
            workspace.close()
