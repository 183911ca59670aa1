"""The views keep up: with two processes that commit at once, with tables that have changed, with folders that move."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.foundation.run.context import read_rows
from tasks.foundation.store import catalogue, views
from tasks.foundation.store.commits import MOST_PAST_RUNS, Commit, write_commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import PartFile, write_part
from tasks.foundation.store.views import duckdb_type
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.operations import BUILDS, STAGE_RUNS
from tests.unit.bare_commits import bare_commit


def commit(layout: Layout, member: str) -> None:
    write_commit(layout, bare_commit("b1", "judging", member=member))


def test_a_slow_writer_of_the_views_does_not_undo_a_quick_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(tmp_path)
    has_read, may_go_on = threading.Event(), threading.Event()
    create, slow_thread = views._bring_up_to_date, "slow"

    def paused(*arguments: Any) -> None:
        create(*arguments)
        if threading.current_thread().name == slow_thread:
            has_read.set()
            assert may_go_on.wait(30)

    monkeypatch.setattr(views, "_bring_up_to_date", paused)
    commit(layout, "a")
    slow = threading.Thread(target=views.rebuild_views, args=(layout,), name=slow_thread)
    slow.start()
    assert has_read.wait(30)
    commit(layout, "b")
    quick = threading.Thread(target=views.rebuild_views, args=(layout,))
    quick.start()
    quick.join(0.3)  # without the lock it would be done by now
    may_go_on.set()
    for thread in (slow, quick):
        thread.join(60)
        assert not thread.is_alive()
    with views.open_views(layout) as connection:
        assert connection.execute("select member from stage_runs order by member").fetchall() == [("a",), ("b",)]


def test_a_file_made_before_the_tables_changed_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(tmp_path)
    commit(layout, "a")
    with monkeypatch.context() as earlier:
        earlier.setattr(views, "_shape", lambda: "an earlier one")
        views._empty_file.cache_clear()
        views.rebuild_views(layout)
    views._empty_file.cache_clear()
    with views.open_views(layout) as connection:
        assert connection.execute("select member, failed_by from stage_runs").fetchall() == [("a", "{}")]
    made = layout.database.stat().st_mtime_ns
    views.open_views(layout).close()
    assert layout.database.stat().st_mtime_ns == made


def scenes(*topics: str) -> pa.Table:
    row = dict.fromkeys(TABLES["scenes"].columns, "x")
    return TABLES["scenes"].arrow([row | {"scene_id": topic, "language": "en", "topic": topic} for topic in topics])


def give(layout: Layout, build: str, *topics: str, **changes: Any) -> Commit:
    """Commits a stage with one scene a part, as a run would; `changes` are fields of its commit."""
    commit = bare_commit(build, "scenes", **changes)
    parts = []
    for number, topic in enumerate(topics):
        path = layout.part("scenes", build, commit.fingerprint, f"{number:05d}", commit.revision)
        write_part(layout, path, TABLES["scenes"], scenes(topic), {})
        parts.append(PartFile(layout.relative(path), 1, "0" * 64, f"{number:05d}"))
    whole = replace(commit, tables={"scenes": tuple(parts), **commit.tables})
    write_commit(layout, whole)
    return whole


def plain(layout: Layout, query: str, folder: Path | None = None) -> str:
    """What a DuckDB client in a process of its own, started in some folder, answers or says."""
    program = "import duckdb, sys; print(duckdb.connect(sys.argv[1], read_only=True).execute(sys.argv[2]).fetchall())"
    command = [sys.executable, "-c", program, str(layout.database), query]
    done = subprocess.run(command, cwd=folder or "/", capture_output=True, text=True)
    return (done.stdout or done.stderr).strip()


def asked(layout: Layout, query: str, build: str | None = None) -> list[tuple[Any, ...]]:
    with views.open_views(layout, build) as connection:
        return connection.execute(query).fetchall()


TOPICS = "select topic from {}.scenes order by topic"


def test_a_commit_that_was_killed_before_its_views_is_shown(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    give(layout, "b1", "a")
    assert asked(layout, TOPICS.format("main")) == [("a",)]
    give(layout, "b2", "b", ended_at="2026-11-02T11:00:00+00:00")
    assert plain(layout, TOPICS.format("main")) == "[('a',)]", "nobody has looked since"
    assert asked(layout, TOPICS.format("main")) == [("b",)]
    assert plain(layout, TOPICS.format("history")) == "[('a',), ('b',)]"
    give(layout, "b1", "c", ended_at="2026-11-03T11:00:00+00:00", revision=1)
    assert asked(layout, TOPICS.format("main"), "b2") == [("b",)]
    assert asked(layout, TOPICS.format("history")) == [("b",), ("c",)]
    layout.commit("b1", "scenes").unlink()
    assert asked(layout, TOPICS.format("history")) == [("b",)]
    assert views.shown_build(layout) == "b2"


def test_what_is_pinned_by_another_hand_is_shown(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    give(layout, "b1", "a")
    give(layout, "b2", "b", ended_at="2026-11-02T11:00:00+00:00")
    assert asked(layout, TOPICS.format("main")) == [("b",)]
    layout.pin.write_text("b1\n")
    assert asked(layout, TOPICS.format("main")) == [("a",)]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"../b1", b"gone", b"b1\nb2", None])
def test_a_pin_that_names_no_build_is_said_and_the_newest_is_shown(
    tmp_path: Path, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    layout = Layout(tmp_path)
    give(layout, "b1", "a")
    if content is None:
        layout.pin.mkdir()
    else:
        layout.pin.write_bytes(content)
    assert (views.shown_build(layout), asked(layout, TOPICS.format("main"))) == ("b1", [("a",)])
    assert "no build is pinned" in caplog.text


def test_a_copied_catalogue_is_refused_until_it_is_made_anew(tmp_path: Path) -> None:
    first, second = Layout(tmp_path / "first"), Layout(tmp_path / "second")
    give(first, "b1", "a")
    views.rebuild_views(first)
    shutil.copytree(first.root, second.root)
    give(first, "b1", "changed", revision=1)
    views.rebuild_views(first)
    for query in (TOPICS.format("main"), TOPICS.format("history"), "select count(*) from scenes"):
        said = plain(second, query, tmp_path)
        assert "have been moved or copied" in said and str(first.root) in said
    views.open_views(second).close()
    assert plain(second, TOPICS.format("main"), tmp_path / "first") == "[('a',)]"
    shutil.rmtree(first.root)
    assert plain(second, TOPICS.format("main"), tmp_path) == "[('a',)]"


def test_a_plain_client_finds_the_files_from_any_folder_and_by_any_way(tmp_path: Path) -> None:
    layout, way = Layout(tmp_path / "there"), Layout(tmp_path / "way")
    give(layout, "b1", "a")
    views.rebuild_views(layout)
    way.root.symlink_to(layout.root)
    assert {
        plain(each, TOPICS.format("main"), folder) for each in (layout, way) for folder in (Path("/"), tmp_path)
    } == {"[('a',)]"}
    assert plain(Layout(Path()), TOPICS.format("main"), layout.root) == "[('a',)]"


def test_a_column_that_an_old_build_lacks_is_a_typed_null(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    new = give(layout, "new", "a")
    old = give(layout, "old", "b")
    shape = {name: type_ for name, type_ in TABLES["scenes"].shape.items() if name != "goal_type"}
    (path,) = (layout.root / part.path for part in old.tables["scenes"])
    less = scenes("b").drop_columns(["goal_type"]).append_column("gone", pa.array([7]))
    pq.write_table(less.set_column(5, "time", pa.array([1830])), path)
    shape |= {"time": "int64", "gone": "int64"}
    write_commit(layout, replace(old, columns={"scenes": shape}))
    query = "select build, time, goal_type, typeof(goal_type) from history.scenes order by build"
    assert asked(layout, query) == [("new", "x", "x", "VARCHAR"), ("old", "1830", None, "VARCHAR")]
    assert asked(layout, "select goal_type from scenes", "old") == [(None,)]
    assert new.columns == {}, "of a table that is not named, the columns are those of now"


def test_files_that_are_gone_hide_no_other_table_and_no_other_build(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    give(layout, "whole", "a")
    broken = give(layout, "broken", "b", "c", ended_at="2026-11-02T11:00:00+00:00")
    for part in broken.tables["scenes"]:
        (layout.root / part.path).unlink()
    assert asked(layout, TOPICS.format("main"), "whole") == [("a",)]
    assert asked(layout, "select count(*) from history.votes") == [(0,)]
    with pytest.raises(duckdb.IOException, match="part-00000"):
        asked(layout, TOPICS.format("main"), "broken")


def test_a_record_that_cannot_be_read_hides_only_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    layout = Layout(tmp_path)
    give(layout, "b1", "a")
    give(layout, "b2", "b", ended_at="2026-11-02T11:00:00+00:00")
    commit(layout, "m")
    layout.commit("b2", "scenes").write_text('{"build": "b2"')
    assert asked(layout, TOPICS.format("history")) == [("a",)]
    assert views.shown_build(layout) == "b1"
    assert "build b2 is shown without scenes" in caplog.text
    assert asked(layout, "select build, state, unreadable_stages from builds order by build") == [
        *(("b1", "unfinished", []), ("b2", "unreadable", ["scenes"]))
    ]
    give(layout, "b2", "c")
    assert asked(layout, TOPICS.format("history")) == [("a",), ("c",)]


def test_parts_are_listed_by_their_numbers_and_come_back_one_by_one() -> None:
    names = ["prepare", *(f"{number:05d}" for number in (0, 1, 2, 4, 5)), "00003.r1", "00006.r1", "00007.r1", "finish"]
    parts = [PartFile(f"store/scenes/build=b/f/part-{name}.parquet", 0, "", "") for name in names]
    lines = list(catalogue.lines_of(parts))
    assert len(lines) == 6  # two steps, 0 to 2, 4 to 5, 3 redone, 6 to 7 redone
    with duckdb.connect() as connection:
        connection.execute(catalogue.DECLARED.format(columns_of_runs="state varchar"))
        (found,) = connection.execute("select catalogue.listed('/there/', ?)", ["\n".join(lines)]).fetchone() or ()
    assert sorted(found) == sorted(f"/there/{part.path}" for part in parts)


def test_a_view_says_what_it_holds(tmp_path: Path) -> None:
    comments = "select schema_name, comment from duckdb_views() where view_name = '{}' and not internal order by all"
    columns = (
        "select comment from duckdb_columns() where table_name = '{}' and schema_name = 'main' order by column_index"
    )
    with views.open_views(Layout(tmp_path)) as connection:
        for table in (*TABLES.values(), STAGE_RUNS, BUILDS):
            found = connection.execute(comments.format(table.name)).fetchall()
            assert [schema for schema, _ in found] == ["history", "main"]
            assert all(comment.startswith(table.grain) for _, comment in found)
            assert all(comment for (comment,) in connection.execute(columns.format(table.name)).fetchall())


def test_the_builds_are_a_view(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    usage = {"calls": 2, "cost_usd": 0.5}
    give(layout, "b1", "a", usage=usage, record={"profile": "demo"}, ends_chain=True)
    write_commit(layout, bare_commit("b1", "judging", member="m", partial=True, usage=usage))
    give(layout, "b2", "b", usage={"calls": 1}, started_at="2026-10-01T10:00:00+00:00")
    give(layout, "b2", "c", usage={"calls": 4}, revision=1)
    query = "select * exclude (created_at, last_commit_at) from {}.builds order by build"
    expected = [
        ("b1", "demo", "partial", True, 2, ["judging@m"], [], 4, 1.0),
        ("b2", None, "unfinished", False, 1, [], [], 4, None),
    ]
    assert asked(layout, query.format("main")) == asked(layout, query.format("history")) == expected
    with views.open_views(layout) as connection:
        shown = connection.execute("describe builds").fetchall()
    assert [(name, type_.lower()) for name, type_, *_ in shown] == [
        (field.name, {"timestamptz": "timestamp with time zone"}.get(found := duckdb_type(field.type), found))
        for field in BUILDS.schema
    ]


def test_runs_that_were_replaced_stay_readable(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for revision in range(MOST_PAST_RUNS + 2):
        give(layout, "b1", "a", revision=revision, ended_at=f"2026-11-02T11:00:{revision:02d}+00:00")
    query = "select state, revision from {}.stage_runs order by revision"
    assert asked(layout, query.format("main")) == [("committed", MOST_PAST_RUNS + 1)]
    replaced = [("replaced", revision) for revision in range(1, MOST_PAST_RUNS + 1)]
    assert asked(layout, query.format("history")) == [*replaced, ("committed", MOST_PAST_RUNS + 1)]
    layout.past_runs("b1", "scenes").write_text("[{}]")
    assert asked(layout, query.format("history")) == [("committed", MOST_PAST_RUNS + 1)]


ODD = [
    "[x]",
    "a[",
    "]b",
    "who?",
    "*",
    "it's",
    'say "so"',
    "100 %#",
    " blank ",
    "éü 对话",
    "new\nline",
    "a|b",
    "{0}",
    "~",
    "$HOME",
]


@pytest.mark.parametrize("name", [*ODD, "k=v", "build=other", "language=zh"])
def test_artifacts_may_lie_in_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    layout = Layout(tmp_path / name / "artifacts")
    made = give(layout, "b1", "a", "b")
    give(layout, "b2", "c", ended_at="2026-11-02T11:00:00+00:00")
    paths = [part.path for part in made.tables["scenes"]]
    query = "select build, topic, language from {}.scenes order by topic"
    assert asked(layout, query.format("history")) == [("b1", "a", "en"), ("b1", "b", "en"), ("b2", "c", "en")]
    assert asked(layout, query.format("main"), "b1") == [("b1", "a", "en"), ("b1", "b", "en")]
    assert plain(layout, query.format("main")) == "[('b2', 'c', 'en')]"
    assert read_rows(layout, TABLES["scenes"], paths)["topic"].to_list() == ["a", "b"]
    portion = read_rows(layout, TABLES["scenes"], paths, columns=["topic"])
    assert portion["topic"].to_list() == ["a", "b"]
    assert layout.root.is_relative_to(tmp_path / name)
