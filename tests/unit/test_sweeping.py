"""What nobody needs is shown first, and goes when told to; what a run is at, or nobody can read, is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.foundation.errors import BuildBusy, StoreError
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.store.commits import builds, read_commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.locks import lock
from tasks.foundation.store.removing import remove_build, sweep
from tasks.foundation.store.views import open_views, use_build
from tests.unit.echo_stage import STAGE
from tests.unit.test_cli import Run, colloquy  # noqa: F401 - a fixture
from tests.unit.test_stage_run import Model, model, run, workspace_of  # noqa: F401 - fixtures


def parts(layout: Layout, build: str) -> set[str]:
    return {path.name for path in (layout.root / "store").glob(f"scenes/build={build}/*/*")} | {
        path.name for path in (layout.root / "store").glob(f"replies/build={build}/*/*")
    }


async def test_only_what_no_commit_names_goes_and_only_when_told(model: Model, workspace_of: type[Workspace]) -> None:  # noqa: F811
    await run(workspace := workspace_of())  # type: ignore[call-arg]
    await run(workspace_of(), force=True)  # type: ignore[call-arg]
    layout = workspace.layout
    everything = parts(layout, "b1")
    (found,) = sweep(layout, delete=False)
    assert found.build == "b1" and found.files and not found.kept_because
    assert parts(layout, "b1") == everything, "without being told, nothing goes"
    (gone,) = sweep(layout, delete=True)
    assert gone == found and list(sweep(layout, delete=True)) == []
    assert everything - parts(layout, "b1") == {name for name in everything if ".r1." not in name}
    with open_views(layout) as connection:
        assert connection.execute("select count(*) from scenes").fetchall() == [(9,)]
    assert await run(workspace_of()) is None  # type: ignore[call-arg]


async def test_a_stopped_run_that_was_swept_works_its_rows_again(model: Model, workspace_of: type[Workspace]) -> None:  # noqa: F811
    await run(workspace := workspace_of(), stop_after=2)  # type: ignore[call-arg]
    (gone,) = sweep(workspace.layout, delete=True)
    assert gone.files and parts(workspace.layout, "b1") == set()
    asked = len(model.asked)
    commit = await run(workspace_of())  # type: ignore[call-arg]
    assert commit is not None and commit.accounting.n_produced == 9
    assert len(model.asked) == asked + 2, "the rows of the third shard; the others come from the cache"


async def test_a_build_that_a_stage_is_running_in_is_left_alone(model: Model, workspace_of: type[Workspace]) -> None:  # noqa: F811
    workspace = workspace_of()  # type: ignore[call-arg]
    with StageRun.open(STAGE, workspace, "b1") as stage_run:
        stage_run.prepare()
        (left,) = sweep(workspace.layout, delete=True)
        assert "stage curation of build b1 is being run by" in left.kept_because
        with pytest.raises(BuildBusy):
            remove_build(workspace.layout, "b1", delete=True)
        for shard in stage_run.shards:
            await stage_run.work(shard)
        assert stage_run.commit().accounting.n_produced == 9
        await stage_run.close()


async def test_a_build_whose_commit_cannot_be_read_is_left_alone(model: Model, workspace_of: type[Workspace]) -> None:  # noqa: F811
    await run(workspace := workspace_of())  # type: ignore[call-arg]
    layout = workspace.layout
    layout.commit("b1", "curation").write_text("{")
    before = parts(layout, "b1")
    (left,) = sweep(layout, delete=True)
    assert "curation.json cannot be read" in left.kept_because and parts(layout, "b1") == before


async def test_a_build_is_removed_with_its_parts_and_comes_back_without_a_call(
    model: Model,  # noqa: F811
    workspace_of: type[Workspace],  # noqa: F811
) -> None:
    await run(workspace := workspace_of())  # type: ignore[call-arg]
    await run(workspace_of(), build="b2")  # type: ignore[call-arg]
    layout, asked = workspace.layout, len(model.asked)
    shown = remove_build(layout, "b1", delete=False)
    assert shown.files and builds(layout) == ["b1", "b2"]
    assert remove_build(layout, "b1", delete=True) == shown
    assert builds(layout) == ["b2"] and parts(layout, "b1") == set() != parts(layout, "b2")
    with open_views(layout) as connection:
        assert connection.execute("select distinct build from history.scenes").fetchall() == [("b2",)]
    await run(workspace_of())  # type: ignore[call-arg]
    assert len(model.asked) == asked and read_commit(layout, "b1", "curation") is not None


async def test_a_pinned_build_and_one_that_is_none_are_not_removed(model: Model, workspace_of: type[Workspace]) -> None:  # noqa: F811
    await run(workspace := workspace_of())  # type: ignore[call-arg]
    use_build(workspace.layout, "b1")
    with pytest.raises(StoreError, match="'b1' is pinned"):
        remove_build(workspace.layout, "b1", delete=True)
    for name in ("nix", "../builds", "", "*"):
        with pytest.raises(StoreError, match="does not exist; expected one of: b1"):
            remove_build(workspace.layout, name, delete=True)
    assert builds(workspace.layout) == ["b1"]


def test_links_in_the_store_are_nothing_to_sweep(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "artifacts")
    folder = layout.part("scenes", "b1", "f", "0", 0).parent
    folder.mkdir(parents=True)
    (tmp_path / "mine.parquet").touch()
    (folder / "part-0.parquet").symlink_to(tmp_path / "mine.parquet")
    assert list(sweep(layout, delete=True)) == []
    assert (folder / "part-0.parquet").is_symlink()


async def test_the_commands_show_builds_and_ask_before_they_delete(
    model: Model,  # noqa: F811
    workspace_of: type[Workspace],  # noqa: F811
    colloquy: Run,  # noqa: F811
) -> None:
    assert "There is no build yet" in colloquy("builds").out
    await run(workspace := workspace_of())  # type: ignore[call-arg]
    await run(workspace_of(), force=True)  # type: ignore[call-arg]
    assert "b1" in colloquy("builds").out and "complete" in colloquy("builds").out
    assert "`colloquy gc --yes` deletes them" in colloquy("gc").out
    with lock(workspace.layout.lock("b1", "curation"), "its run", 0):
        busy = colloquy("gc", "--yes")
        assert "b1: left alone" in busy.err and "every file is named" in busy.out
    assert colloquy("gc", "--yes").out.splitlines()[-1].startswith("deleted ")
    assert colloquy("gc").out == "every file is named by a commit\n"
    assert "`colloquy builds remove b1 --yes`" in colloquy("builds", "remove", "b1").out
    assert colloquy("builds", "remove", "nix").code == 4
    assert colloquy("builds", "remove", "b1", "--yes").out.startswith("removed build b1: ")
    assert "There is no build yet" in colloquy("builds").out
