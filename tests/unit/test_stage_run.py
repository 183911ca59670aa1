"""The run of one stage: resume, redo, force, commit, against real Parquet, DuckDB and the real engine."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from flows.chain.results import result_of
from tasks.foundation.errors import (
    BudgetReached,
    BuildBusy,
    ConfigError,
    ModelError,
    ModelUnavailable,
    StoreError,
    TableError,
    TooManyFailures,
)
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.cache_files import export_replies, import_replies
from tasks.foundation.llm.request import ProviderCall, RawReply, Usage
from tasks.foundation.run import files
from tasks.foundation.run import stage_run as stage_run_module
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.store.commits import Commit, past_runs, read_commit
from tasks.foundation.store.files import scratch_file
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import explain_reading_errors, open_views, use_build
from tests.fakes.scripted import ScriptedProvider
from tests.unit.echo_stage import KEYS, STAGE

QUIET = ("curation.shard_rows=4", "llm.retry_attempts=1", "llm.retry_base_seconds=0", "run.rows_in_flight=1")


class Model:
    """A scripted model that counts its calls and fails on the keys it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failing: dict[str, Exception] = {}
        self.failing_once: dict[str, Exception] = {}

    def __call__(self, call: ProviderCall) -> str:
        key = next(key for key in KEYS if key in call.messages[0].content)
        self.asked.append(key)
        if key in self.failing:
            raise self.failing[key]
        if key in self.failing_once:
            raise self.failing_once.pop(key)
        return json.dumps({"topic": f"about {key}"})


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    model = Model()
    engine = stage_run_module.Engine

    def with_model(*args: Any, **kwargs: Any) -> Any:
        return engine(*args, **{**kwargs, "providers": {"scripted": ScriptedProvider(model)}})

    monkeypatch.setattr(stage_run_module, "Engine", with_model)
    return model


@pytest.fixture
def workspace_of(tmp_path: Path) -> Callable[..., Workspace]:
    def make(*overrides: str) -> Workspace:
        return Workspace.open("test", (*QUIET, *overrides), Layout(tmp_path / "artifacts"))

    return make


async def run(
    workspace: Workspace, build: str = "b1", *, force: bool = False, stop_after: int | None = None
) -> Commit | None:
    """One run of the stage; `stop_after` shards it ends as if killed."""
    with StageRun.open(STAGE, workspace, build, force=force, ends_chain=True) as stage_run:
        try:
            if stage_run.up_to_date:
                return None
            stage_run.prepare()
            for shard in stage_run.shards:
                if shard == stop_after:
                    return None
                await stage_run.work(shard)
            return stage_run.commit()
        finally:
            await stage_run.close()
            workspace.close()


def scenes(workspace: Workspace) -> list[tuple[Any, ...]]:
    with open_views(workspace.layout) as connection:
        return connection.execute("select seed_id, topic from scenes order by seed_id").fetchall()


async def test_a_run_commits_all_tables_and_a_balanced_accounting(model: Model, workspace_of: Any) -> None:
    commit = await run(workspace := workspace_of())
    assert commit is not None
    # 10 items + 1 duplicate + 1 bad source row; row09 is dropped by the last step
    assert commit.accounting.to_json() == {
        "n_in": 12,
        "n_produced": 9,
        "n_filtered": 2,
        "n_failed": 1,
        "filtered": {"duplicate": 1, "unwanted": 1},
        "failed": {"parse": 1},
    }
    assert {name: commit.rows(name) for name in ("scenes", "pairings", "rejects", "llm_calls", "replies")} == {
        "scenes": 9,
        "pairings": 10,
        "rejects": 1,
        "llm_calls": 10,
        "replies": 10,
    }
    assert scenes(workspace)[0] == ("row00", "about row00")


async def test_replies_without_token_counts_are_told_apart_from_free_ones(
    monkeypatch: pytest.MonkeyPatch, model: Model, workspace_of: Any
) -> None:
    answer = model.__call__

    def half_silent(call: ProviderCall) -> str | RawReply:
        text = answer(call)
        return RawReply(text, Usage(), "stop") if len(model.asked) % 2 else text

    monkeypatch.setattr(Model, "__call__", lambda self, call: half_silent(call))
    with StageRun.open(STAGE, workspace_of(), "b1") as stage_run:
        stage_run.prepare()
        for shard in stage_run.shards:
            await stage_run.work(shard)
        commit = stage_run.commit()
        await stage_run.close()
    result = result_of(commit, "run", stage_run.progress, 1.0)
    assert (result.calls, result.unreported) == (10, 5)
    assert result.tokens.startswith("≥ ")


async def test_a_committed_stage_with_the_same_inputs_is_up_to_date(model: Model, workspace_of: Any) -> None:
    await run(workspace_of())
    assert await run(workspace_of()) is None
    assert len(model.asked) == 10


async def test_a_knob_that_cannot_change_the_data_leaves_the_stage_up_to_date(model: Model, workspace_of: Any) -> None:
    await run(workspace_of())
    assert await run(workspace_of("curation.shard_rows=3", "run.rows_in_flight=7")) is None


async def test_a_changed_setting_runs_again_and_replays_every_reply(model: Model, workspace_of: Any) -> None:
    first = await run(workspace_of())
    second = await run(workspace_of("curation.episodes={en: 1, zh: 1}"))
    assert first and second and first.fingerprint != second.fingerprint
    assert len(model.asked) == 10
    assert second.usage["calls"] == 0
    assert first.table_hash("scenes") == second.table_hash("scenes")


async def test_only_a_text_limit_that_the_stage_uses_makes_it_run_again(model: Model, workspace_of: Any) -> None:
    await run(workspace_of())
    assert await run(workspace_of("text_limits.summary=99")) is None
    commit = await run(workspace_of("text_limits.goal=99"))
    assert commit is not None and commit.record["settings"]["text_limits"] == {"goal": 99}


@pytest.mark.parametrize("stop_after", [0, 1, 2])
async def test_a_stopped_run_goes_on_where_it_was_whatever_the_shard_size_is_now(
    model: Model, workspace_of: Any, stop_after: int
) -> None:
    await run(workspace_of(), stop_after=stop_after)
    commit = await run(workspace_of("curation.shard_rows=1"))
    whole = await run(workspace_of(), build="b2")
    assert commit and whole
    assert sorted(model.asked) == KEYS
    assert {len(commit.tables[name]) for name in ("llm_calls", "replies")} == {3}, "the plan of the first run is obeyed"
    assert commit.table_hash("scenes") == whole.table_hash("scenes")
    assert commit.accounting == whole.accounting
    assert commit.usage["calls"] == 10, "what the stopped run spent is not lost"
    assert (whole.usage["calls"], whole.usage["from_cache"], whole.usage["cost_usd"]) == (0, 10, 0.0)


def damage(workspace: Workspace, table: str, how: Callable[[bytes], bytes]) -> None:
    """Spoils the first part of a table in a folder of the store."""
    (path, *_) = sorted((workspace.layout.root / "store" / table).rglob("*.parquet"))
    path.write_bytes(how(path.read_bytes()))


@pytest.mark.parametrize("table", ["rejects", "llm_calls", "replies", "_curation_notes", "pairings", "duplicates"])
@pytest.mark.parametrize("how", [lambda whole: whole[:-20], lambda whole: b""], ids=["cut short", "empty"])
async def test_a_damaged_part_of_an_unfinished_run_is_made_again(
    model: Model, workspace_of: Any, table: str, how: Callable[[bytes], bytes]
) -> None:
    await run(workspace := workspace_of(), stop_after=2)
    damage(workspace, table, how)
    commit = await run(workspace_of())
    assert commit is not None and commit.accounting.n_produced == 9
    assert sorted(model.asked) == KEYS, "replies come from the cache"


async def test_a_part_whose_content_is_damaged_is_made_again_by_the_same_command(
    model: Model, workspace_of: Any
) -> None:
    await run(workspace := workspace_of(), stop_after=2)
    damage(workspace, "replies", lambda whole: whole[:8] + bytes(len(whole) // 3) + whole[8 + len(whole) // 3 :])
    with pytest.raises(TableError, match="It was removed: the same command makes it again"):
        await run(workspace_of())
    commit = await run(workspace_of())
    assert commit is not None and sorted(model.asked) == KEYS


async def test_views_that_a_killed_run_left_behind_are_mended_by_a_run_that_is_up_to_date(
    model: Model, workspace_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = workspace_of()
    with monkeypatch.context() as killed:
        killed.setattr(stage_run_module, "rebuild_views", kill)
        with pytest.raises(KeyboardInterrupt):
            await run(workspace)
    assert not workspace.layout.database.exists()
    assert await run(workspace_of()) is None
    with duckdb.connect(str(workspace.layout.database), read_only=True) as connection:
        assert connection.execute("select count(*) from scenes").fetchall() == [(9,)]


def kill(layout: Layout) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["[a] who?*", "100 % 'of' \"it\" #\nnext", "build=b1"])
async def test_a_stage_runs_in_a_folder_of_any_name(model: Model, tmp_path: Path, name: str) -> None:
    layout = Layout(tmp_path / name / "artifacts")

    def workspace() -> Workspace:
        return Workspace.open("test", QUIET, layout)

    await run(workspace(), stop_after=2)
    commit = await run(workspace())
    assert commit is not None and commit.accounting.n_produced == 9 and sorted(model.asked) == KEYS
    assert len(scenes(workspace())) == 9
    assert await run(workspace()) is None
    assert sum(part.rows for part in commit.tables["scenes"]) == 9


async def test_a_failed_run_is_among_the_past_ones(model: Model, workspace_of: Any) -> None:
    model.failing = {key: ModelError("server", "down") for key in KEYS}
    with pytest.raises(TooManyFailures):
        await run(workspace := workspace_of())
    model.failing = {}
    await run(workspace_of())
    with open_views(workspace.layout) as connection:
        query = "select state, n_in, n_failed, reason from {}.stage_runs order by ended_at"
        failed, done = connection.execute(query.format("history")).fetchall()
        assert connection.execute(query.format("main")).fetchall() == [done] == [("committed", 12, 1, None)]
    assert failed[:3] == ("failed", 12, 11), "as a commit counts them: with the rows that ended before they were asked"
    assert "10 of 10 rows failed" in failed[3]


async def test_a_fault_of_the_program_is_among_the_past_runs_by_its_kind(
    workspace_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("sk-secret")

    monkeypatch.setattr(stage_run_module, "deal", broken)
    with pytest.raises(ZeroDivisionError):
        await run(workspace := workspace_of())
    (past,) = past_runs(workspace.layout, "b1", "curation")
    assert (past.state, past.reason) == ("failed", "ZeroDivisionError")


async def test_scratch_files_of_dead_runs_are_removed_by_the_next(model: Model, workspace_of: Any) -> None:
    scratch = (workspace := workspace_of()).layout.scratch
    scratch.mkdir(parents=True)
    ours = scratch_file(scratch, "part.parquet")
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = scratch / ours.name.replace(f".{os.getpid()}@", f".{dead.pid}@")
    elsewhere = scratch / left.name.replace(f"@{socket.gethostname()}", "@another")
    for path in (ours, left, elsewhere, scratch / "mine.txt"):
        path.touch()
    await run(workspace)
    assert sorted(scratch.iterdir()) == sorted([ours, elsewhere, scratch / "mine.txt"])


async def test_a_file_that_is_gone_makes_the_stage_run_again_from_the_cache(model: Model, workspace_of: Any) -> None:
    first = await run(workspace := workspace_of())
    assert first is not None
    (workspace.layout.root / first.tables["scenes"][0].path).unlink()
    with pytest.raises(StoreError, match="a file of a build cannot be read"), explain_reading_errors():
        scenes(workspace)
    model.asked = []
    second = await run(workspace_of())
    assert second is not None and model.asked == []
    assert second.table_hash("scenes") == first.table_hash("scenes")
    assert scenes(workspace)[0] == ("row00", "about row00")
    assert await run(workspace_of()) is None


async def test_force_makes_a_new_revision_without_a_call_and_equal_rows(model: Model, workspace_of: Any) -> None:
    first = await run(workspace_of())
    second = await run(workspace_of(), force=True)
    assert first and second
    assert (first.revision, second.revision) == (0, 1)
    assert len(model.asked) == 10
    for table in ("scenes", "pairings", "duplicates"):
        assert first.table_hash(table) == second.table_hash(table)


async def test_rows_lost_to_the_provider_are_redone_alone_by_the_next_run(model: Model, workspace_of: Any) -> None:
    model.failing = {"row02": ModelError("connection", "no route"), "row05": ModelError("refused", "no")}
    first = await run(workspace_of())
    assert first and first.partial and first.accounting.failed == {"connection": 1, "parse": 1, "refused": 1}
    model.failing, model.asked = {}, []
    second = await run(workspace := workspace_of())
    assert second and not second.partial
    assert model.asked == ["row02"], "a refusal is an answer: it is not asked again"
    assert second.revision == 1
    assert second.accounting.failed == {"parse": 1, "refused": 1}
    assert "about row02" in {topic for _, topic in scenes(workspace)}
    assert await run(workspace_of()) is None
    unchanged = [part for part in first.tables["llm_calls"] if part.label == "00002"]
    assert unchanged == [part for part in second.tables["llm_calls"] if part.label == "00002"]


async def test_a_run_that_goes_wrong_stops_and_goes_on_when_the_provider_is_back(
    model: Model, workspace_of: Any
) -> None:
    model.failing = {key: ModelError("server", "500") for key in KEYS[2:]}
    with pytest.raises(TooManyFailures, match=r"curation.max_failure_rate = 0.5"):
        await run(workspace_of())
    model.failing, model.asked = {}, []
    commit = await run(workspace_of())
    assert commit and not commit.partial
    assert sorted(model.asked) == KEYS[2:]


class Killed(BaseException):
    """As if the process had been killed there."""


@pytest.mark.parametrize("written", range(1, 5))
async def test_a_kill_while_a_shard_is_written_anew_loses_and_doubles_nothing(
    model: Model, workspace_of: Any, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    strict = ("curation.max_failure_rate=0.05", "llm.salvage_rounds=0")
    model.failing = {"row02": ModelError("server", "500")}
    with pytest.raises(TooManyFailures):
        await run(workspace_of(*strict))
    write, left = files.write_part, iter(range(written))

    def until_killed(*arguments: Any) -> None:
        if next(left, None) is None:
            raise Killed
        write(*arguments)

    model.failing = {}
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(files, "write_part", until_killed)
        await run(workspace_of(*strict))
    model.asked = []
    commit = await run(workspace := workspace_of(*strict))
    assert commit is not None and not commit.partial and model.asked == []
    with open_views(workspace.layout) as connection:
        answered = "select row_key from llm_calls where error_kind is null order by row_key"
        assert [key for (key,) in connection.execute(answered).fetchall()] == KEYS
        kept = "select count(*) from replies where reply is not null"
        assert connection.execute(kept).fetchone() == (10,)
    assert [topic for _, topic in scenes(workspace)] == [f"about {key}" for key in KEYS[:9]]


async def test_a_row_that_failed_in_passing_is_tried_again_when_its_shard_is_done(
    model: Model, workspace_of: Any
) -> None:
    model.failing_once = {"row01": ModelError("timeout", "slow"), "row05": ModelError("server", "500")}
    commit = await run(workspace := workspace_of())
    assert commit is not None and not commit.partial
    assert model.asked == [*KEYS[:4], "row01", *KEYS[4:8], "row05", *KEYS[8:]]
    assert commit.accounting.n_failed == 1, "the bad source row"
    with open_views(workspace.layout) as connection:
        attempts = connection.execute("select row_key, attempts from llm_calls order by row_key").fetchall()
    assert attempts == [(key, 2 if key in ("row01", "row05") else 1) for key in KEYS]


async def test_a_budget_stops_a_stage_and_a_larger_one_goes_on_where_it_stopped(
    model: Model, workspace_of: Any
) -> None:
    with pytest.raises(
        BudgetReached, match=r"stage curation stopped: the budget curation.budget.max_calls = 6"
    ) as caught:
        await run(workspace_of("curation.budget.max_calls=6"))
    assert caught.value.exit_code == 9
    assert model.asked == KEYS[:6]
    model.asked = []
    with pytest.raises(BudgetReached, match=r"run.budget.max_calls = 8 is used up: 8 calls"):
        await run(workspace_of("run.budget.max_calls=8"))
    assert model.asked == KEYS[6:8], "what was paid for before counts, and is not paid for again"
    model.asked = []
    commit = await run(workspace_of())
    assert commit is not None and model.asked == KEYS[8:]
    assert commit.usage["calls"] == 10


async def test_dollars_cannot_be_limited_for_a_model_without_a_price(model: Model, workspace_of: Any) -> None:
    workspace = workspace_of("curation.budget.max_cost_usd=1")
    priceless = dataclasses.replace(workspace.models["scripted-a"], prices=None)
    workspace.models = {**workspace.models, "scripted-a": priceless}
    with pytest.raises(
        ConfigError, match=r"curation.budget.max_cost_usd: expected a price .* found none for scripted-a"
    ):
        await run(workspace)
    assert model.asked == []


async def test_a_build_is_replayed_elsewhere_without_a_provider(
    model: Model, workspace_of: Any, tmp_path: Path
) -> None:
    first = await run(workspace_of())
    with ReplyCache(tmp_path / "artifacts" / "cache" / "replies.sqlite") as cache:
        export_replies(cache, tmp_path / "b1.parquet", runs="b1/")
    with ReplyCache(tmp_path / "elsewhere" / "cache" / "replies.sqlite") as cache:
        import_replies(cache, tmp_path / "b1.parquet")
    model.asked = []
    settings = (*QUIET, "llm.replay_only=true")
    again = await run(Workspace.open("test", settings, Layout(tmp_path / "elsewhere")))
    assert first is not None and again is not None and model.asked == []
    assert {name: again.table_hash(name) for name in again.tables} == {
        name: first.table_hash(name) for name in first.tables
    }


async def test_two_runs_of_one_stage_exclude_each_other_by_name(model: Model, workspace_of: Any) -> None:
    with (
        StageRun.open(STAGE, workspace_of(), "b1"),
        pytest.raises(BuildBusy, match=r"stage curation of build b1 is being run by process \d+"),
    ):
        StageRun.open(STAGE, workspace_of(), "b1")
    assert await run(workspace_of()) is not None


async def test_a_partial_commit_survives_the_pruning_of_the_reply_cache(
    model: Model, workspace_of: Any, tmp_path: Path
) -> None:
    model.failing = {"row02": ModelError("timeout", "slow")}
    await run(workspace_of())
    for file in (tmp_path / "artifacts" / "cache").glob("replies*"):
        file.unlink()
    model.failing, model.asked = {}, []
    commit = await run(workspace_of())
    assert commit and model.asked == ["row02"]


async def test_a_row_that_fails_twice_is_one_reject_and_two_ledger_rows(model: Model, workspace_of: Any) -> None:
    model.failing = {"row02": ModelError("timeout", "slow")}
    await run(workspace_of())
    commit = await run(workspace := workspace_of())
    assert commit and commit.partial and commit.accounting.failed == {"parse": 1, "timeout": 1}
    with open_views(workspace.layout) as connection:
        ledger = connection.execute("select revision from llm_calls where row_key = 'row02' order by all").fetchall()
    assert ledger == [(0,), (1,)]


async def test_main_shows_the_pinned_build_and_history_all(model: Model, workspace_of: Any) -> None:
    await run(workspace := workspace_of(), build="old")
    await run(workspace, build="new")
    counts = "select build, count(*) as n from {}.scenes group by all order by all"
    with open_views(workspace.layout) as connection:
        assert connection.execute(counts.format("main")).fetchall() == [("new", 9)]
        assert connection.execute(counts.format("history")).fetchall() == [("new", 9), ("old", 9)]
    use_build(workspace.layout, "old")
    with duckdb.connect(str(workspace.layout.database), read_only=True) as connection:
        assert connection.execute(counts.format("main")).fetchall() == [("old", 9)]
        assert connection.execute("select stage, n_in, n_produced from stage_runs").fetchall() == [("curation", 12, 9)]
        assert connection.execute("select count(*) from metrics").fetchall() == [(0,)]


async def test_the_views_follow_a_moved_folder(model: Model, workspace_of: Any, tmp_path: Path) -> None:
    await run(workspace_of())
    (tmp_path / "artifacts").rename(tmp_path / "elsewhere")
    with open_views(Layout(tmp_path / "elsewhere")) as connection:
        assert connection.execute("select count(*) from scenes").fetchall() == [(9,)]


async def test_a_committed_record_round_trips(model: Model, workspace_of: Any) -> None:
    commit = await run(workspace := workspace_of())
    assert commit is not None
    found = read_commit(workspace.layout, "b1", "curation")
    assert found is not None and found.to_json() == dataclasses.replace(commit).to_json()


@pytest.mark.parametrize("silence", ["", "<think>Which topic?</think>"])
async def test_a_stage_whose_model_never_said_a_word_is_not_committed(
    workspace_of: Callable[..., Workspace], monkeypatch: pytest.MonkeyPatch, silence: str
) -> None:
    engine = stage_run_module.Engine
    silent = ScriptedProvider(lambda call: RawReply(silence, Usage(10, 0, 5), "stop"))
    monkeypatch.setattr(
        stage_run_module, "Engine", lambda *a, **k: engine(*a, **{**k, "providers": {"scripted": silent}})
    )
    workspace = workspace_of("curation.max_failure_rate=1.0", "llm.max_reasks=0")
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match=r"'scripted-a' has not said a word: all 10 replies .*--fresh"):
            await run(workspace)
    assert not workspace.layout.commit("b1", "curation").exists()
