"""What `colloquy run` shows: bars on a terminal, lines elsewhere, nothing when quiet; then a table."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from flows.chain.results import StageResult, show_tokens
from flows.chain.status import StageStatus
from flows.cli.console import make_table, terminal
from flows.server.environment import OUR_LOGGERS
from tasks.foundation.run.progress import Progress

LINE_SECONDS = 10.0


class Screen:
    """Progress and results of one command; this one shows only the results."""

    def __init__(self, console: Console, *, talks: bool) -> None:
        self.console = console
        self._talks = talks
        self._results: list[StageResult] = []

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the progress off the terminal."""

    def say(self, sentence: str) -> None:
        if self._talks:
            self.console.print(sentence, style="dim", soft_wrap=True)

    @contextmanager
    def showing_warnings(self) -> Iterator[None]:
        """Within it, what the stages warn of is shown, too."""
        handler = _Warnings(self)
        loggers = [logging.getLogger(name) for name in OUR_LOGGERS]
        for one in loggers:
            one.addHandler(handler)
        try:
            yield
        finally:
            for one in loggers:
                one.removeHandler(handler)

    def warn(self, sentence: str) -> None:
        if self._talks:
            self.console.print(f"warning: {sentence}", style="yellow", markup=False, soft_wrap=True)

    def changed(self, progress: Progress) -> None:
        """A stage has moved on."""

    def finished(self, result: StageResult) -> None:
        """A stage has ended well."""
        self._results.append(result)

    def up_to_date(self, build: str, statuses: Sequence[StageStatus], *, whole: bool) -> None:
        """Every stage, or every one of those asked for, is up to date: say so of each."""
        for status in statuses:
            assert status.commit is not None
            accounting = status.commit.accounting
            late = f" ({status.why})" if status.why else ""
            self.console.print(
                f"{status.run:<24} up to date, {accounting.n_in} rows in, {accounting.n_produced} produced{late}",
                highlight=False,
                soft_wrap=True,
            )
        what = f"Build {build} is" if whole else f"Of build {build}, what was asked for is"
        self.console.print(f"{what} up to date; 0 model calls were made.")

    def results(self) -> None:
        """The table of the stages that ended well."""
        if self._results:
            self.console.print(results_table(self._results))
            lines = (planned_line(self._results), unreported_line(self._results), failed_line(self._results))
            for line in filter(None, lines):
                self.console.print(line, highlight=False, markup=False, soft_wrap=True)
            for result in self._results:
                if result.partial:
                    self.console.print(
                        f"{result.stage} is partial: some rows failed in a way that may pass. "
                        "Run the same command again to redo just those.",
                        highlight=False,
                        soft_wrap=True,
                    )


class _Warnings(logging.Handler):
    """Hands warnings to a screen, wherever in the process they are made."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.warn(record.getMessage())


class Lines(Screen):
    """For a log file: a line when a stage changes its phase, and one every ten seconds between."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, talks=True)
        self._phases: dict[str, tuple[str, float]] = {}

    def changed(self, progress: Progress) -> None:
        phase, since = self._phases.get(progress.stage, ("", 0.0))
        now = time.monotonic()
        if progress.phase != phase or now - since >= LINE_SECONDS:
            self._phases[progress.stage] = (progress.phase, now)
            self.console.print(f"{progress.stage:<24} {progress.phase}{_counts(progress)}")


class Live(Screen):
    """For a terminal: a bar a stage with rows, rate, failures, calls, tokens a second and time left."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, talks=True)
        self._bars = Bars(
            TextColumn("{task.description:<16}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(compact=True),
            console=console,
        )
        self._rows: dict[str, TaskID] = {}
        self._working: dict[str, tuple[float, int]] = {}

    def __enter__(self) -> Screen:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def changed(self, progress: Progress) -> None:
        row = self._row(progress)
        self._bars.update(row, total=progress.rows_total, completed=progress.rows_done, detail=self._detail(progress))

    def finished(self, result: StageResult) -> None:
        super().finished(result)
        row = self._rows.get(result.stage)
        if row is None:
            row = self._rows[result.stage] = self._bars.add_task(result.stage, total=1, completed=1, detail="")
        self._bars.update(row, detail="up to date" if result.decision == "up to date" else _closing(result))
        self._bars.stop_task(row)

    def _row(self, progress: Progress) -> TaskID:
        if progress.stage not in self._rows:
            self._rows[progress.stage] = self._bars.add_task(progress.stage, total=None, detail="")
        return self._rows[progress.stage]

    def _detail(self, progress: Progress) -> str:
        if progress.phase != "working":
            return progress.phase
        if progress.waiting:
            return f"{progress.calls} calls · waiting: {progress.waiting}"
        if progress.batches:
            return f"{progress.rows_failed} failed · {progress.batches.sentence()}"
        since, found = self._working.setdefault(progress.stage, (time.monotonic(), progress.rows_done))
        seconds = max(time.monotonic() - since, 0.1)
        rate = (progress.rows_done - found) / seconds
        tokens = show_tokens(round(progress.completion_tokens / seconds), progress.unreported)
        return (
            f"{rate:.1f} rows/s · {progress.rows_failed} failed · {progress.calls} calls, {progress.cached} cached"
            f" · {tokens} tokens/s"
        )


def screen(quiet: bool) -> Screen:
    """The screen that fits where the output goes."""
    console = terminal()
    if quiet:
        return Screen(console, talks=False)
    return Live(console) if console.is_terminal else Lines(console)


def results_table(results: Sequence[StageResult]) -> Table:
    """One line a stage: where its rows ended, and what this run took."""
    numbers = ("in", "produced", "filtered", "failed", "calls", "cached", "tokens", "cost $", "seconds")
    table = make_table("stage", *numbers, "done", right=numbers, title=f"build {results[-1].build}")
    for result in results:
        table.add_row(result.stage, *_cells(result), _done(result))
    return table


def planned_line(results: Sequence[StageResult]) -> str:
    """The calls of the stages that ran against their plans; empty where none had one."""
    ran = [result for result in results if result.decision != "up to date" and result.planned_calls is not None]
    low, high = (sum(result.planned_calls[end] for result in ran if result.planned_calls) for end in (0, 1))
    if not high:
        return ""
    made, replayed = sum(result.calls_of_rows for result in ran), sum(result.replayed_of_rows for result in ran)
    now = sum(result.calls for result in ran)
    earlier = f" ({now:,} of them in this run)" if now < made else ""
    cached = f"; the cache answered {replayed:,} requests" if replayed else ""
    return f"Expected {low:,.0f}–{high:,.0f} calls, made {made:,}{earlier}{cached}."


def unreported_line(results: Sequence[StageResult]) -> str:
    """What the sums of tokens lack; empty when nothing."""
    lacking = sum(result.unreported for result in results)
    if not lacking:
        return ""
    return f"Tokens are not whole: of {lacking:,} replies the provider reported none (≥: the others'; unknown: all)."


def failed_line(results: Sequence[StageResult]) -> str:
    """Where the reasons of failed rows are; empty when none failed."""
    failed = [result for result in results if result.n_failed]
    if not failed:
        return ""
    query = "select stage, row_key, kind, reason from rejects"
    return f'Why rows failed: colloquy sql --build {failed[0].build} "{query}"'


def _cells(result: StageResult) -> tuple[str, ...]:
    counts = (result.n_in, result.n_produced, result.n_filtered, result.n_failed)
    cost = "unknown" if result.cost_usd is None else f"{result.cost_usd:.4f}"
    work = (result.calls, result.from_cache)
    return (*(f"{count:,}" for count in (*counts, *work)), result.tokens, cost, f"{result.seconds:.1f}")


def _done(result: StageResult) -> str:
    revision = f", revision {result.revision}" if result.revision else ""
    partial = ", partial" if result.partial else ""
    return f"{result.decision}{revision}{partial}"


def _closing(result: StageResult) -> str:
    return f"done · {result.n_failed} failed · {result.calls} calls, {result.from_cache} cached"


def _counts(progress: Progress) -> str:
    if not progress.rows_total:
        return ""
    return f": {progress.counts()}" + (f"; waiting: {progress.waiting}" if progress.waiting else "")
