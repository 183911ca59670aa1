"""What `colloquy run --tell` shows beside progress: a dialogue, a vote and a judgement as soon as they are there, then
the headline scores and where to look further."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from rich.console import Console

from flows.chain.results import OBSERVERS, StageResult
from flows.cli.console import make_table
from flows.server import viewing
from tasks.foundation.run.progress import Progress
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import open_views
from tasks.report.questions import ask

Row = Mapping[str, Any]

HEADLINES = ("awareness", "interaction", "overall_pooled", "latent_accuracy", "ficr", "satisfaction")
"""Of sql/reports/headlines.sql."""


@contextmanager
def telling(build: str, console: Console) -> Iterator[None]:
    """Within it, the build's stages are shown as they end; after it, its scores, whatever of it was there before."""
    teller = _Teller(build, console)
    OBSERVERS.append(teller)
    try:
        yield
    finally:
        OBSERVERS.remove(teller)
    for stage in SHOWN:
        teller.show(stage)
    teller.end()


class _Teller:
    """Shows each of `SHOWN` once."""

    def __init__(self, build: str, console: Console) -> None:
        self._build = build
        self._console = console
        self._shown: set[str] = set()

    def changed(self, progress: Progress) -> None:
        """Nothing is shown of a stage before it has ended."""

    def finished(self, result: StageResult) -> None:
        self.show(result.stage.partition("@")[0])

    def show(self, stage: str) -> None:
        if stage not in SHOWN or stage in self._shown:
            return
        self._shown.add(stage)
        report, lines_of = SHOWN[stage]
        if rows := self._ask(report):
            for line in ["", *lines_of(rows), ""]:
                self._console.print(line, soft_wrap=True)

    def end(self) -> None:
        columns = ("benchmark", "pool", "target", "metric", "value", "ci_low", "ci_high", "n")
        table = make_table(*columns, right=columns[4:], title="scores")
        for row in self._ask("headlines"):
            if row["metric"] in HEADLINES and row["value"] is not None:
                table.add_row(*("" if row[name] is None else str(row[name]) for name in columns))
        self._console.print(table)
        build = self._build
        for line in (
            f"viewer, once `view` runs: http://127.0.0.1:{viewing.PORT}",
            f"next: colloquy view --build {build} --open   every row, and the prompt and reply behind it",
            f"      colloquy report --build {build} --open   one page about it",
            f'      colloquy sql --build {build} "from utterances"   any question',
        ):
            self._console.print(line, soft_wrap=True)

    def _ask(self, report: str) -> Sequence[Row]:
        with open_views(Layout.default(), self._build) as connection:
            return ask(connection, report).records


def tell_dialogue(rows: Sequence[Row]) -> Iterator[str]:
    """The utterances of each language, a line each."""
    for language, said in groupby(rows, key=lambda row: str(row["language"])):
        yield f"a dialogue ({language})"
        yield from (f"  {row['speaker']}: {row['text']}" for row in said)


def tell_vote(rows: Sequence[Row]) -> Iterator[str]:
    """What was proposed for a label, who chose which and why, and how it ended."""
    first = rows[0]
    candidates = [json.dumps(each["value"], ensure_ascii=False) for each in json.loads(first["candidates"])]
    yield f"the votes on {first['element']} of {first['dialogue_id']}"
    yield from (f"  [{number}] {candidate}" for number, candidate in enumerate(candidates))
    for row in rows:
        chosen = "none" if row["candidate"] is None else f"[{row['candidate']}]"
        yield f"  {row['voter']} votes {chosen}: {row['reason']}"
    yield f"  {first['outcome']}: {first['value']}"


def tell_judgement(rows: Sequence[Row]) -> Iterator[str]:
    """A conversation and what a judge says of it."""
    first = rows[0]
    yield f"a judgement of {first['conversation_id']}"
    for row in rows:
        yield f"  user: {row['user_text']}"
        yield f"  assistant: {row['assistant_text']}"
    if first["unscored_kind"] is not None:
        yield f"  {first['judge']} gave no score that can be used: {first['unscored_kind']}"
    else:
        met = "met" if first["completed"] else "not met"
        yield f"  {first['judge']}: intent {met}, satisfaction {first['satisfaction']} of 5. {first['reason']}"


SHOWN: Mapping[str, tuple[str, Callable[[Sequence[Row]], Iterator[str]]]] = {
    "dialogues": ("first_dialogue", tell_dialogue),
    "voting": ("first_vote", tell_vote),
    "judging": ("first_judgement", tell_judgement),
}
"""By stage: the report that has it, and how its rows are told."""
