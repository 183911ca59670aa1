"""How requests usually go: read from a store's earlier replies, else from the table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flows import chain
from tasks.foundation.llm.models import load_models
from tasks.foundation.llm.providers.scripted import make_reply
from tasks.foundation.llm.request import Message, ProviderCall, RawReply
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.dry_run import plan_run
from tasks.foundation.run.usual_usage import FEWEST, UsageHistory, count_prompt_tokens, count_tokens, usual_table
from tasks.foundation.settings import load_settings
from tasks.foundation.store.layout import Layout
from tests.many_rows.task import STAGE
from tests.whole_stage import run_whole

SCRIPTED = load_models()["scripted-a"]
TOPIC = "an answer of some length"


def answer(call: ProviderCall) -> RawReply:
    text = json.dumps({"topic": TOPIC})
    found = make_reply(text, call, 2.0)
    return replace(found, usage=replace(found.usage, prompt_tokens=2 * (found.usage.prompt_tokens or 0)))


async def history_of(folder: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> UsageHistory:
    """Of a store in which the stage's model was asked for so many rows."""
    monkeypatch.setenv("COLLOQUY_BENCH_ROWS", str(rows))
    workspace = Workspace.open("test", (), Layout(folder / "artifacts"))
    workspace.models = {**workspace.models, "scripted-a": replace(SCRIPTED, name=f"{__name__}:answer")}
    await run_whole(STAGE, workspace)
    return UsageHistory.of(workspace.layout, ["curation"])


async def test_earlier_replies_of_the_model_say_how_long_they_are_and_what_a_prompt_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = await history_of(tmp_path, monkeypatch, 20)
    usual = history.usual("curation", "distil", SCRIPTED)
    assert (usual.basis, usual.n, usual.calls, usual.requests_a_row) == ("own", 20, 1.0, 1.0)
    assert usual.completion_tokens == -(-len(json.dumps({"topic": TOPIC})) // 4)
    assert usual.call_seconds == pytest.approx(2.0)
    assert 1 < usual.prompt_share < 2.5, "the server reports twice as many as four characters a token"
    alike = history.usual("curation", "distil", load_models()["scripted-b"])
    assert (alike.basis, alike.completion_tokens) == ("alike", usual.completion_tokens)
    behind_an_api = history.usual("curation", "distil", load_models()["gpt-4o"])
    assert (behind_an_api.basis, behind_an_api.completion_tokens) == ("table", None)
    assert history.usual("curation", "other", SCRIPTED).basis == "table"


async def test_a_handful_of_replies_says_less_than_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = await history_of(tmp_path, monkeypatch, FEWEST - 1)
    assert history.usual("curation", "distil", SCRIPTED).basis == "table"


def test_a_store_without_builds_knows_nothing(tmp_path: Path) -> None:
    assert UsageHistory.of(Layout(tmp_path), ["voting"]).usual("voting", "vote", SCRIPTED).basis == "table"


def test_what_replies_decide_is_read_at_any_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    from tasks.foundation.run.usual_usage import _Read

    read = _Read()
    prompt = json.dumps([{"role": "user", "content": "a" * 400}])
    said = ('{"ok": true, "turns": [{"ok": false}, {"ok": true}]}', 'Well: {"ok": true, "turns": []}', "no", None)
    for reply in said:
        read.add("gpt", 104.0, prompt, reply)
    facts: dict[str, Any] = read.facts()
    assert facts["chances"] == {"ok": 0.75}
    assert facts["items"] == {"turns": 1.0}
    assert facts["prompt_share"] == pytest.approx(1.0)


def test_chinese_takes_more_tokens_a_character_and_most_of_all_where_the_vocabulary_has_none() -> None:
    assert count_tokens("abcd" * 10, "gpt") == 10
    assert count_tokens("你好", "gpt") == pytest.approx(1.4)
    assert count_tokens("你好", "smollm") == pytest.approx(3.6)
    assert count_prompt_tokens([Message("user", "abcd")], "gpt") == 1 + usual_table().message_tokens


def test_the_table_knows_every_purpose_that_the_prompts_of_a_stage_are_asked_for() -> None:
    known = {stage: set(purposes) for stage, purposes in usual_table().replies.items()}
    asking = {stage.name for stage in chain.chain() if stage.work is not None}
    assert set(known) == asking | {"any"}


async def test_no_run_ends_because_it_cannot_be_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await history_of(tmp_path, monkeypatch, 20)
    layout = Layout(tmp_path / "artifacts")
    for part in layout.root.rglob("*.parquet"):
        part.write_bytes(b"damaged")
    assert UsageHistory.of(layout, ["curation"]).usual("curation", "distil", SCRIPTED).basis == "table"
    assert "earlier replies of stage curation are not looked at" in caplog.text

    async def work(*arguments: Any) -> Any:
        raise LookupError("a made-up reply names nothing that is there")

    failing = replace(STAGE, work=work)
    context: Any = SimpleNamespace(settings=load_settings("test"))
    assert plan_run(failing, context, ["a"], load_models(), Layout(tmp_path / "none")) == []
