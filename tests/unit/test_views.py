"""The views keep up: with two processes that commit at once, and with tables that have changed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation.store import views
from tasks.foundation.store.commits import write_commit
from tasks.foundation.store.layout import Layout
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
