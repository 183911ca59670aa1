"""The section on prompts: how each fares, and three of each filled in, with what came back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tasks.foundation.store.layout import Layout
from tasks.report import charts
from tasks.report.blocks import Block, Excerpts, Note, Pairs, Section, make_filled_table, make_section
from tasks.report.data_sections import Ask
from tasks.report.questions import QueryResult
from tasks.report.transcripts.parts import parse_json, pretty, shorten

NAMES = ("stage", "model")


def whole_file(layout: Layout, build: str) -> Path:
    """Where `colloquy pilot` keeps what the whole of the profile is expected to take."""
    return layout.reports / build / "whole.json"


def prompts(ask: Ask, build: str, whole: Mapping[str, Any] | None = None) -> Section:
    """`whole`: what `whole_file` says, for the build of a pilot."""
    answer, examples = ask("prompts_in_use"), ask("prompt_examples")
    return make_section(
        "prompts",
        "Prompts",
        "How models deal with what they are asked. Look here after a pilot, before the money is spent.",
        [
            (
                "",
                [
                    _asked_again(answer),
                    make_filled_table(answer, "Requests by stage, purpose and model.", folded=len(answer) > 30),
                ],
            ),
            ("The whole", list(_whole(whole)) if whole else []),
            ("Filled in", list(_filled_in(examples))),
        ],
        Note("No model has been asked.", "missing", f"colloquy run --build {build}"),
    )


def _asked_again(answer: QueryResult) -> Block | None:
    """The shares, of those prompts that have any to show."""
    records = [
        {**record, "prompt": f"{record['purpose']}, {record['alias']}"}
        for record in answer.records
        if record["percent_asked_again"] or record["percent_failed"]
    ]
    series = {"percent_asked_again": "asked again, %", "percent_failed": "failed for good, %"}
    return charts.bars("Requests asked again, and failed, in %.", records, "prompt", series, "% of requests")


def _whole(whole: Mapping[str, Any]) -> Iterator[Block]:
    yield Note(f"Profile {whole['profile']} as a whole. {' '.join(whole['expected'])}")
    stages = tuple(
        (f"{one['stage']}, {one['model']}", ", ".join(f"{one[name]} {name}" for name in one if name not in NAMES))
        for one in whole["stages"]
    )
    yield Pairs("By stage and model, from colloquy plan, with what the pilot has shown:", stages)


def read_whole(layout: Layout, build: str) -> dict[str, Any] | None:
    """What `whole_file` says; None for a build that was no pilot."""
    try:
        found: dict[str, Any] = json.loads(whole_file(layout, build).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _filled_in(examples: QueryResult) -> Iterator[Block]:
    for stage in examples.values("stage"):
        of_stage = examples.where(stage=stage)
        for purpose in of_stage.values("purpose"):
            records = of_stage.where(purpose=purpose).records
            yield Excerpts(
                f"{stage}: {purpose}",
                tuple(
                    (
                        f"{record['alias']}, {record['row_key']}" + ("" if record["attempts"] < 2 else ", asked again"),
                        tuple(_parts(record["prompt"], record["reply"], record["error_kind"])),
                    )
                    for record in records
                ),
            )


def _parts(prompt: str | None, reply: str | None, failed: str | None) -> Iterator[tuple[str, str]]:
    """Role and text of every message, then the reply."""
    messages: Any = parse_json(prompt)
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            yield str(message.get("role", "message")), shorten(str(message.get("content", "")))
    yield "reply" if failed is None else f"reply ({failed})", shorten(pretty(reply)) if reply else "none came"
