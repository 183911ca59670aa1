"""Taking one member (a target, a judge) of the stages that fan out from a build: its commits go, its files stay."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from tasks.foundation.errors import StoreError
from tasks.foundation.store.commits import Commit, builds, commits_of
from tasks.foundation.store.durable import remove_file
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.locks import lock
from tasks.foundation.store.runs import remember
from tasks.foundation.store.views import rebuild_views


def drop_member(layout: Layout, build: str, member: str, stages: Sequence[str]) -> list[Commit]:
    """Removes the member's commits of these stages and returns them; the views no longer show their rows.

    Its parts stay, so a run of the same stage finds them done. Raises StoreError when the build does not exist or has
    no such member, BuildBusy while one of the stages runs.
    """
    commits = commits_of(layout, build)
    if not commits:
        raise StoreError(f"build {build!r} does not exist; expected one of: {', '.join(builds(layout)) or 'none yet'}")
    fanned = [commit for commit in commits.values() if commit.stage in stages]
    chosen = [commit for commit in fanned if commit.member == member]
    if not chosen:
        known = ", ".join(sorted({commit.member or "" for commit in fanned})) or "none yet"
        raise StoreError(f"build {build!r} has nothing of {member!r} in {', '.join(stages)}; expected one of: {known}")
    with ExitStack() as held:
        for commit in chosen:
            held.enter_context(lock(layout.lock(build, commit.run), f"stage {commit.run} of build {build}", 0))
        for commit in chosen:
            remember(layout, build, commit.row("dropped"))
            remove_file(layout.commit(build, commit.run))
        rebuild_views(layout)
    return chosen
