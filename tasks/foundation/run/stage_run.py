"""One stage of one build, from the lock to the commit.

    with StageRun.open(STAGE, workspace, "2026-12") as run:
        run.prepare()
        shards = run.shards
        while shards:
            for shard in shards:
                await run.work(shard)
            shards = run.draw_on()
        run.commit()

A part that exists is not made again, so the same calls after a kill go on where it stopped. Nothing is
visible before `commit`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from tasks.foundation.errors import ColloquyError, StoreError
from tasks.foundation.ids import seed_of
from tasks.foundation.llm.batch.transport import BatchTransport
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.sending import Patience
from tasks.foundation.run.batching import check_mode, in_batches, open_transport, rows_at_once
from tasks.foundation.run.committing import check_keys, check_silent_models, items_accounting, record_of, usage_of
from tasks.foundation.run.context import RunContext, Workspace
from tasks.foundation.run.cost_plan import PlannedCalls
from tasks.foundation.run.dry_run import plan_run
from tasks.foundation.run.files import (
    FINISH,
    PREPARE,
    RunFiles,
    Shard,
    ShardPlan,
    deal,
    label_of,
    passing_failures,
    produced_in,
    read_plan,
    round_label,
    write_plan,
)
from tasks.foundation.run.opening import Decision, Inputs, check_models, decide, inputs_of
from tasks.foundation.run.progress import Progress
from tasks.foundation.run.shards import Worker, check_failure_rate
from tasks.foundation.run.spending import budget_of, check_budget
from tasks.foundation.settings.sections import StageSection
from tasks.foundation.stage import Finished, Prepared, Stage
from tasks.foundation.store.commits import Commit, begin_with, commits_of, missing_parts, remember, write_commit
from tasks.foundation.store.files import clear_scratch
from tasks.foundation.store.layout import run_name
from tasks.foundation.store.locks import lock
from tasks.foundation.store.parts import PartWriter
from tasks.foundation.store.views import rebuild_views
from tasks.foundation.tables import EVERY_STAGE, TABLES
from tasks.foundation.tables.operations import LlmCall, StageRunRow

log = logging.getLogger(__name__)

MOST_ROUNDS = 40
"""Of `Stage.draw_on`. Rounds that each bring their share end after some ten; this is for those that bring nothing."""


class StageRun:
    """A stage of a build being run by this process; made by `open`, used as a context manager."""

    def __init__(
        self, stage: Stage, workspace: Workspace, build: str, member: str | None, *, force: bool, ends_chain: bool
    ) -> None:
        self.stage = stage
        self.workspace = workspace
        self.build = build
        self.member = member
        self.name = run_name(stage.name, member)
        self.ends_chain = ends_chain
        self.progress = Progress(self.name)
        self._stack = ExitStack()
        commits = commits_of(workspace.layout, build)
        self._commits: Mapping[str, Commit] = commits
        self._shard_plan: ShardPlan | None = None
        self._begun: datetime | None = None
        self._expected: Sequence[PlannedCalls] = ()
        self._engine: Engine | None = None
        self._transport: BatchTransport | None = None
        stage.check(self._context())
        self.inputs: Inputs = inputs_of(stage, workspace, commits, build, member)
        self.previous = commits.get(self.name)
        self.decision: Decision
        whole = self.previous is None or not missing_parts(workspace.layout, self.previous)
        self.decision, self.revision = decide(self.previous, self.inputs.fingerprint, force, whole=whole)
        if not self.up_to_date:
            specs = [workspace.models[alias] for alias in stage.aliases(workspace.settings, member)]
            check_mode(stage, workspace, member)
            check_budget(stage.name, workspace.settings, specs, batched=self._batched)
            if not workspace.settings.llm.replay_only:
                check_models(stage, workspace, member)

    @staticmethod
    def open(
        stage: Stage,
        workspace: Workspace,
        build: str,
        member: str | None = None,
        *,
        force: bool = False,
        ends_chain: bool = False,
    ) -> StageRun:
        """Take the stage's lock, check what can be checked before anything is paid for, and decide.

        `member` names the target or judge of a stage that fans out.

        Raises BuildBusy, ConfigError, ModelUnavailable, SourceError or StoreError.
        """
        layout, wait = workspace.layout, workspace.settings.run.lock_wait_seconds
        with ExitStack() as stack:
            name = run_name(stage.name, member)
            stack.enter_context(lock(layout.lock(build, name), f"stage {name} of build {build}", wait))
            run = StageRun(stage, workspace, build, member, force=force, ends_chain=ends_chain)
            clear_scratch(layout.scratch)
            if run.up_to_date:
                rebuild_views(layout)  # a run that was killed may have committed and not come to them
            run._stack = stack.pop_all()
        return run

    def __enter__(self) -> StageRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            if error is not None and self._begun:
                self._remember_failed(error)

    def _remember_failed(self, error: BaseException) -> None:
        """Puts the run among the past ones of its stage. What goes wrong in that must not hide why the run failed."""
        progress, plan = self.progress, self._shard_plan
        row = StageRunRow(
            stage=self.stage.name,
            member=self.member,
            fingerprint=self.inputs.fingerprint,
            revision=self.revision,
            partial=False,
            n_in=plan.prepared.n_in + plan.n_items if plan else None,
            n_produced=plan.prepared.n_produced + progress.rows_done - progress.rows_failed if plan else None,
            n_filtered=plan.prepared.n_filtered if plan else None,
            n_failed=plan.prepared.n_failed + progress.rows_failed if plan else None,
            filtered_by=None,
            failed_by=None,
            calls=progress.calls,
            cost_usd=None,
            started_at=self._begun or datetime.now(UTC),
            ended_at=datetime.now(UTC),
            state="failed",
            reason=_reason(error),
        )
        try:
            remember(self.workspace.layout, self.build, row)
        except StoreError as second:
            log.warning("that stage %s of build %s failed cannot be written down: %s", self.name, self.build, second)

    async def close(self) -> None:
        """Close the models' clients; the lock is freed by leaving the context."""
        if self._engine is not None:
            await self._engine.close()
            self._engine = None
        if self._transport is not None:
            await self._transport.close()
            self._transport = None

    @property
    def up_to_date(self) -> bool:
        return self.decision == "up to date"

    @property
    def shards(self) -> range:
        """Numbers of the shards, once prepared."""
        return range(len(self._dealt.shards))

    @property
    def closed(self) -> bool:
        """Whether all items are named, once prepared."""
        return self._dealt.closed

    def prepare(self) -> None:
        """The stage's first step and the shard plan; both are found again by a resume."""
        self._begun = datetime.now(UTC)
        self._say("preparing")
        if not self.workspace.guest:
            begin_with(self.workspace.layout, self.build, self.workspace.profile, self.workspace.remembered)
        layout = self.workspace.layout
        self._shard_plan = read_plan(self._plan_path)
        if self._shard_plan is None or not self._files.has_prepared():
            started = _now()
            prepared = self.stage.prepare(self._context())
            self._files.write_step(PREPARE, (*self.stage.prepared, "rejects"), prepared.rows)
            if self._shard_plan is None:
                dealt = deal(prepared.items, self._rows_at_once(self._section.shard_rows))
                closed = self.stage.draw_on is None or not dealt
                self._obey(ShardPlan(dealt, prepared.accounting, started, closed=closed))
        self._redraw_lost_rounds(self._dealt)
        self.progress.rows_total = self._dealt.n_items
        self._expected = plan_run(self.stage, self._context(), self._dealt.first_items, self.workspace.models, layout)
        self._say("working")

    def draw_on(self) -> range:
        """The stage's next round, to be called once all shards so far are done: the shards of its items, none where
        there are enough. A round that was drawn is obeyed by every resume and redo."""
        plan = self._dealt
        if plan.closed or self.stage.draw_on is None:
            return range(0)
        self._say("drawing on")
        number = len(plan.rounds) + 1
        drawn = self.stage.draw_on.draw(self._context(), number) if number <= MOST_ROUNDS else None
        drawn = drawn or Prepared(())
        if drawn.items:
            self._files.write_step(round_label(number), self.stage.prepared, drawn.rows)
        self._obey(plan.grown(drawn.items, self._rows_at_once(self._section.shard_rows), drawn.accounting))
        self.progress.rows_total = self._dealt.n_items
        self._say("working")
        return range(len(plan.shards), len(self._dealt.shards))

    def _obey(self, plan: ShardPlan) -> None:
        """Writes down the plan, once the rows of its last round are there."""
        write_plan(self._plan_path, self.workspace.layout.scratch, plan)
        self._shard_plan = plan

    @property
    def _plan_path(self) -> Path:
        return self.workspace.layout.plan(self.build, self.name, self.inputs.fingerprint, self._plan_revision)

    def _redraw_lost_rounds(self, plan: ShardPlan) -> None:
        """Makes the rows of rounds again whose parts are gone, from what there was when they were drawn."""
        for number in range(1, len(plan.rounds) + 1):
            if self.stage.draw_on is not None and not self._files.has_round(number):
                self._shard_plan = plan.before(number)
                drawn = self.stage.draw_on.draw(self._context(), number) or Prepared(())
                self._files.write_step(round_label(number), self.stage.prepared, drawn.rows)
        self._shard_plan = plan

    async def work(self, shard: int) -> dict[str, int]:
        """Make what is missing of a shard; returns its counts of rows, produced and failed.

        When it fails, the other shards are to end too, and `close` waits for the answers that are under way.
        """
        try:
            return await self._work(shard)
        except Exception:
            if self._engine is not None:
                self._engine.stop()
            raise

    async def _work(self, shard: int) -> dict[str, int]:
        keys, label = self._dealt.shards[shard], label_of(shard)
        base = self._files.shard(label)
        again = passing_failures(base) if base else set(keys)
        pending = [key for key in keys if key in again]
        if base:
            self._count_found(base, len(keys) - len(pending))
        if pending:
            worked = await self._worker().work(pending)
            await asyncio.to_thread(self._files.write_shard, label, worked.rows, worked.n_produced, base)
        produced = produced_in(self._files.finished_shard(label))
        return {"rows": len(keys), "produced": produced, "failed": len(keys) - produced}

    def commit(self) -> Commit:
        """The last step, the accounting, and the one rename that makes everything visible."""
        if not self.closed:
            raise StoreError(
                f"stage {self.name} may have to draw on: draw_on comes before commit, until it has no shards"
            )
        self._say("committing")
        items, partial = items_accounting(self._files, self._labels, self._dealt.n_items)
        limit, reason = self._section.max_failure_rate, self.progress.last_failure
        check_failure_rate(self.stage.name, items.n_failed, items.n_in, limit, reason)
        finished = self.stage.finish(self._context()) if self.stage.finish else Finished()
        self._files.write_step(FINISH, self.stage.finished, finished.rows)
        accounting = self._dealt.prepared + items.moved(finished.filtered)
        accounting.check(f"stage {self.name} of build {self.build}")
        tables = {name: self._files.parts(name, self._labels) for name in (*self.stage.writes, *EVERY_STAGE)}
        check_silent_models(self._files, tables["llm_calls"], tables["replies"])
        for name, parts in tables.items():
            check_keys(self._files, name, parts)
        commit = Commit(
            build=self.build,
            stage=self.stage.name,
            member=self.member,
            fingerprint=self.inputs.fingerprint,
            revision=self.revision,
            partial=partial,
            tables=tables,
            drafts={draft.name: self._files.parts(draft.name, self._labels) for draft in self.stage.drafts},
            accounting=accounting,
            components=self.inputs.components,
            parents=self.inputs.parents,
            started_at=self._dealt.started_at,
            ended_at=_now(),
            ends_chain=self.ends_chain,
            usage=usage_of(self._files, tables["llm_calls"]),
            record=record_of(self.stage, self.workspace, self.build, self.member, self._plan_revision, self._expected),
            columns={name: TABLES[name].shape for name in tables},
        )
        write_commit(self.workspace.layout, commit)
        self._begun = None
        rebuild_views(self.workspace.layout)
        self._say("committed")
        return commit

    @property
    def _section(self) -> StageSection:
        return self.stage.section_of(self.workspace.settings)

    @property
    def _batched(self) -> bool:
        """Whether the stage's requests travel in batch jobs."""
        return in_batches(self.workspace.settings, self.stage.name)

    def _rows_at_once(self, rows: int) -> int:
        return rows_at_once(self.workspace.settings, rows, batched=self._batched)

    @property
    def _completes(self) -> Commit | None:
        """The partial commit whose failed rows this run redoes."""
        return self.previous if self.decision == "redo failed rows" else None

    @property
    def _plan_revision(self) -> int:
        """A redo obeys the plan of the run whose rows it completes."""
        return int(self._completes.record["plan_revision"]) if self._completes else self.revision

    @property
    def _dealt(self) -> ShardPlan:
        """The shard plan of a run that is prepared."""
        if self._shard_plan is None:
            raise StoreError(f"stage {self.stage.name} has no shard plan yet: prepare comes before work and commit")
        return self._shard_plan

    @property
    def _labels(self) -> list[str]:
        return [label_of(shard) for shard in self.shards]

    @property
    def _files(self) -> RunFiles:
        return RunFiles(
            self.workspace.layout,
            self.stage,
            self.build,
            self.inputs.fingerprint,
            self.revision,
            self._completes,
            len(self._shard_plan.rounds) if self._shard_plan else 0,
        )

    def _context(self) -> RunContext:
        def made(table: str) -> list[str]:
            return self._files.made(table, self._labels if self._shard_plan else ())

        def writer(table: str) -> AbstractContextManager[PartWriter]:
            return self._files.writer(table)

        return RunContext(self.workspace, self.stage, self.build, self._commits, made, self.member, writer)

    def _worker(self) -> Worker:
        settings = self.workspace.settings
        return Worker(
            stage=self.stage,
            context=self._context(),
            engine=self._asking(),
            progress=self.progress,
            seed=settings.run.seed,
            rows_in_flight=self._rows_at_once(settings.run.rows_in_flight),
            max_failure_rate=self._section.max_failure_rate,
            salvage_rounds=settings.llm.salvage_rounds,
        )

    def _asking(self) -> Engine:
        if self._engine is None:
            settings = self.workspace.settings
            if self._batched:
                self._transport = open_transport(self.workspace)
                self._transport.progress.watchers.append(lambda _: self.progress.changed())
                self.progress.batches = self._transport.progress
            self._engine = Engine(
                self.workspace.models,
                self.workspace.cache,
                run_id=f"{self.build}/{self.name}/{self.inputs.fingerprint}/r{self.revision}",
                revision=self.revision,
                max_reasks=settings.llm.max_reasks,
                patience=Patience(
                    settings.llm.retry_attempts, settings.llm.retry_base_seconds, settings.llm.outage_seconds
                ),
                replay_only=settings.llm.replay_only,
                budget=budget_of(self.stage.name, self.build, settings, self.workspace.models, self.workspace.cache),
                transport=self._transport,
                fresh_salt=seed_of(self.build) if settings.run.fresh else None,
                on_call=self._on_call,
            )
        return self._engine

    def _on_call(self, row: LlmCall) -> None:
        counters = self._asking().counters
        progress = self.progress
        progress.calls, progress.cached = counters.calls_made, counters.cached_replies
        progress.prompt_tokens = counters.usage.prompt_tokens or 0
        progress.completion_tokens = counters.usage.completion_tokens or 0
        progress.unreported = counters.unreported
        progress.changed()

    def _count_found(self, base: Shard, n: int) -> None:
        self.progress.rows_done += n
        self.progress.rows_failed += n - produced_in(base)
        for reject in self._files.read(base["rejects"], "rejects").to_pylist():
            self.progress.last_failure = f"{reject['kind']}, {reject['reason']}"
        self.progress.changed()

    def _say(self, phase: str) -> None:
        self.progress.phase = phase
        self.progress.changed()


def _reason(error: BaseException) -> str:
    """Why a run failed: in our own words, or by the name of what nobody foresaw, whose text may hold anything."""
    said = str(error) if isinstance(error, ColloquyError) else type(error).__name__
    return said.encode("utf-8", "replace").decode("utf-8")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
