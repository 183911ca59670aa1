"""The whole chain on scripted models, in this process: every stage run with the plan it had and what it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from flows import chain
from tasks.foundation.ids import digest
from tasks.foundation.llm.providers.scripted import from_schema
from tasks.foundation.llm.request import ProviderCall, RawReply, Usage
from tasks.foundation.planning.calls import PlannedCalls
from tasks.foundation.planning.estimate import View
from tasks.foundation.planning.known import committed, known_of
from tasks.foundation.planning.stage_plan import plan_of_stage
from tasks.foundation.run import StageRun, Workspace
from tasks.foundation.stage import Stage
from tasks.foundation.store.commits import Commit, commits_of
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import read_frame
from tasks.foundation.tables import TABLES
from tests.fakes.encoders import WordEncoder

BUILD = "planned"
ASKED: Counter[str] = Counter()


class Words(WordEncoder):
    fingerprint = "words"


def troublesome(call: ProviderCall) -> RawReply:
    """Uses every token it may: the first reply to a request is cut off, JSON is wrong the second time, words are as
    long as they can be."""
    shown = [(message.role, message.content) for message in call.messages[:2]]
    key = digest(call.model.alias, shown, len(call.messages) if call.schema is None else 0, call.sample, call.schema)
    times, ASKED[key] = ASKED[key], ASKED[key] + 1
    words = "w" * (4 * call.max_tokens)
    text = words if call.schema is None else ("{", '{"wrong": true}', from_schema(call))[min(times, 2)]
    prompt = -(-sum(len(message.content) for message in call.messages) // 4)
    return RawReply(text, Usage(prompt, 0, call.max_tokens, 0), "stop" if times else "length")


def workspace(folder: Path, *overrides: str, model: str | None = None, profile: str = "test") -> Workspace:
    """A profile, in a folder of its own; with another callable as its scripted models, if one is named."""
    found = Workspace.open(profile, overrides, Layout(folder / "artifacts"))
    found.stage_of = chain.stage_of()
    found._encoder = Words()
    if model is not None:
        found.models = {alias: replace(spec, name=model) for alias, spec in found.models.items()}
    return found


Taken = Mapping[tuple[str, str], Mapping[str, int]]
"""What was taken, by model and purpose."""


async def run_chain(workspace: Workspace, names: Sequence[str]) -> dict[str, tuple[list[PlannedCalls], Taken]]:
    """What each run's plan said as it began, and the sums of its ledger."""
    found: dict[str, tuple[list[PlannedCalls], Taken]] = {}
    for stage in map(chain.stage, names):
        for member in stage.members(workspace.settings):
            plan = _plan_now(workspace, stage, member)
            with StageRun.open(stage, workspace, BUILD, member) as run:
                run.prepare()
                for shard in run.shards:
                    await run.work(shard)
                commit = run.commit()
                await run.close()
            found[commit.run] = (plan, _taken(workspace, commit))
    workspace.close()
    return found


def _plan_now(workspace: Workspace, stage: Stage, member: str | None) -> list[PlannedCalls]:
    commits = commits_of(workspace.layout, BUILD).values()
    known = known_of(committed(workspace.layout, commits), stage.reads)
    return list(plan_of_stage(stage, View(workspace.settings, workspace.models, known, member)).calls)


def _taken(workspace: Workspace, commit: Commit) -> Taken:
    paths = [part.path for part in commit.tables["llm_calls"]]
    totals: dict[tuple[str, str], Counter[str]] = {}
    for row in read_frame(workspace.layout, TABLES["llm_calls"], paths).to_dicts():
        total = totals.setdefault((row["alias"], row["purpose"]), Counter())
        total.update(requests=1, calls=row["attempts"])
        total.update({name: row[name] or 0 for name in ("prompt_tokens", "completion_tokens")})
    return totals
