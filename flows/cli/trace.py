"""`colloquy trace`: from a number to its units, from a row to its kin and requests, from a request to prompt and
reply."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

import typer

from flows.cli.console import make_table, terminal
from tasks.foundation.errors import ConfigError
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import choose_build
from tasks.foundation.tables import TABLES
from tasks.report import numbers
from tasks.viewer import cells, requests, rows, texts
from tasks.viewer.reading import Library, Reading, known_table

app = typer.Typer(
    help="Follow a number of the metrics to its units, a row to its kin and requests, a request to prompt and reply.",
    no_args_is_help=True,
    add_completion=False,
)


class Format(StrEnum):
    text = "text"
    json = "json"


Build = Annotated[str | None, typer.Option(help="The build; the one that SQL shows when not given.")]
Form = Annotated[Format, typer.Option("--format", help="How the answer is written.")]


@app.command()
def metric(
    name: Annotated[str, typer.Argument(help="A metric, as satisfaction or overall_pooled.", show_default=False)],
    target: Annotated[str | None, typer.Option(help="Of this model.")] = None,
    benchmark: Annotated[str | None, typer.Option(help="demo or eyt, for a metric that both have.")] = None,
    pool: Annotated[str | None, typer.Option(help="On this persona pool only.")] = None,
    language: Annotated[str | None, typer.Option(help="In this language only.")] = None,
    judge: Annotated[str | None, typer.Option(help="By this judge alone.")] = None,
    simulator: Annotated[str | None, typer.Option(help="With this user simulator only.")] = None,
    partner: Annotated[str | None, typer.Option(help="With this partner only.")] = None,
    goal_type: Annotated[str | None, typer.Option(help="Of this goal type only.")] = None,
    slice_: Annotated[str | None, typer.Option("--slice", metavar="JSON", help='As {"turn":3}.')] = None,
    page: Annotated[int, typer.Option(min=1, help=f"Which {cells.PAGE_UNITS} of its units, from 1.")] = 1,
    build: Build = None,
    form: Form = Format.text,
) -> None:
    """Show what a number rests on: its units, the worst first, with what each adds.

    What is not named is all of it together, as in the table metrics.
    """
    named = {"target": target, "benchmark": benchmark, "pool": pool, "language": language, "judge": judge}
    named |= {"simulator": simulator, "partner": partner, "goal_type": goal_type, "slice": slice_}
    key = {"metric": name} | {column: value for column, value in named.items() if value is not None}
    with _reading(build) as reading:
        found = cells.read_cell(reading, key, page)
        _print_json(found) if form is Format.json else _print_cell(found)


@app.command()
def row(
    what: Annotated[
        list[str], typer.Argument(metavar="ID | TABLE KEY…", help="An id; or a table and the parts of a key.")
    ],
    build: Build = None,
    form: Form = Format.text,
) -> None:
    """Show a row: its columns, what it refers to, what refers to it, and the requests that were made for it.

    An id says which table it is of: `colloquy trace row scene_0123456789abcdef`. Any other row is told by its table and
    the parts of its key in order, null for a part that is null.
    """
    with _reading(build) as reading:
        table, key = _name_row(reading, what)
        found = rows.read_row(reading, table, key)
        _print_json(found) if form is Format.json else _print_row(found)


@app.command()
def call(
    request: Annotated[
        str, typer.Argument(help="The request's id, call_…; or a key of the reply cache.", show_default=False)
    ],
    build: Build = None,
    form: Form = Format.text,
) -> None:
    """Show a request: what was sent, exactly, what came back, and each time it was asked again."""
    with _reading(build) as reading:
        found = requests.read_request(reading, request)
        _print_json(found) if form is Format.json else _print_call(found)


@contextmanager
def _reading(build: str | None) -> Iterator[Reading]:
    layout = Layout.default()
    library = Library(layout)
    try:
        with library.open(choose_build(layout, build)) as reading:
            yield reading
    finally:
        library.close()


def _name_row(reading: Reading, what: list[str]) -> tuple[str, Mapping[str, str]]:
    """The table and the key that the arguments mean."""
    if len(what) == 1:
        table, found = rows.find_by_id(reading, what[0])
        return table, {column: str(found[column]) for column in TABLES[table].key}
    table, *parts = what
    key = known_table(table).key
    if len(parts) != len(key):
        raise ConfigError(f"a row of {table} is told by {len(key)} parts ({', '.join(key)}); found {len(parts)}")
    return table, {column: part for column, part in zip(key, parts, strict=True) if part != "null"}


def _print_json(found: Any) -> None:
    typer.echo(json.dumps(asdict(found), ensure_ascii=False, indent=1, default=_plain))


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _say(text: str = "") -> None:
    typer.echo(texts.visible(text))


def _print_cell(found: cells.CellPage) -> None:
    cell, unit = found.row, found.row["unit"]
    cut = ", ".join(f"{name} {cell[name]}" for name in cells.KEY if name != "metric" and cell[name] is not None)
    _say(f"{cell['metric']} ({cut}): {numbers.number(cell['value'], unit)} {numbers.scale(unit)}")
    interval = numbers.interval(cell["ci_low"], cell["ci_high"], unit)
    _say(f"95 % interval: {interval or 'none'}; rests on {numbers.plural(cell['n'], cell['n_unit'])}")
    _say(f"unscored: {cell['n_unscored']}, void by a fault: {cell['n_fault']}")
    if found.panel:
        _say(f"judges that count: {', '.join(found.panel)}")
    if found.lacking:
        _say(found.lacking)
    if not found.units:
        return
    table = make_table(
        "unit", "alone", "pull", "n", "unscored", "void", right=("alone", "pull", "n", "unscored", "void")
    )
    for one in found.units:
        pull = numbers.MISSING if one.pull is None else f"{one.pull:+.3g}"
        counts = (str(one.n), str(one.n_unscored), str(one.n_fault))
        table.add_row(_name_unit(one.unit), numbers.number(one.value, unit), pull, *counts)
    terminal().print(table)
    last = found.first + len(found.units) - 1
    _say(f"units {found.first}–{last} of {found.total}, the worst first; `colloquy trace row` shows one of them")


def _name_unit(unit: Mapping[str, Any]) -> str:
    """The key of a unit's row, as `trace row` takes it, or of what it would have been."""
    for own in ("conversation_id", "interaction_id"):
        if unit.get(own):
            return str(unit[own])
    if unit.get("item_id") and unit.get("fault") != "infra":
        return f"awareness_predictions {unit['item_id']} {unit['target']} {unit['sample']}"
    return f"none, of {unit.get('chat_seed_id') or unit.get('episode_id') or unit.get('item_id')}"


def _print_row(found: rows.RowPage) -> None:
    _say(f"{found.table}: {found.grain}")
    declared = known_table(found.table)
    for name in declared.columns:
        value = found.row[name]
        whole = "null" if value is None else texts.write_whole(value, is_json=name in declared.json_columns)
        _say(f"  {name}: {whole}" if "\n" not in whole else f"  {name}:\n{_indented(whole)}")
    for parent in found.parents:
        there = "" if parent.row else " (not in this build)"
        values = " ".join(texts.write(found.row[column]) for column in parent.columns)
        _say(f"refers to {parent.table} by {', '.join(parent.columns)}: {values}{there}")
    for children in found.children:
        keys = [" ".join(texts.write(one[column]) for column in TABLES[children.table].key) for one in children.rows]
        more = ", …" if children.total > len(keys) else ""
        _say(f"referred to by {children.total:,} of {children.table}: {', '.join(keys)}{more}")
    if found.calls:
        table = make_table("request", "stage", "purpose", "model", "calls", "failed", right=("calls",))
        for one in found.calls:
            told = (one["request_id"], one["stage"], one["purpose"], one["alias"])
            table.add_row(*told, str(one["attempts"]), one["error_kind"] or "")
        terminal().print(table)


def _print_call(found: requests.RequestPage) -> None:
    last = found.calls[0]
    _say(f"{found.request_id}: {last['stage']}, {last['purpose']}, to {last['alias']} for {last['row_key']}")
    cost = "unknown" if last["cost_usd"] is None else f"{last['cost_usd']:.6g}"
    _say(f"calls {last['attempts']}, US dollars {cost}, finish reason {last['finish_reason']}")
    if last["error_kind"]:
        _say(f"failed: {last['error_kind']}")
    for table, one in found.rows:
        _say(f"made for {table} {' '.join(texts.write(one[column]) for column in TABLES[table].key)}")
    if found.lacking:
        _say(found.lacking)
    for number, attempt in enumerate(found.attempts, start=1):
        _say(f"\n── call {number} of {len(found.attempts)}, {attempt.finish_reason}, {attempt.created_at}")
        _print_messages(attempt.messages)
        _say(f"── reply\n{attempt.reply}")
    if not found.attempts:
        _print_messages(found.messages or ())
        _say(f"── reply\n{'none came' if found.reply is None else found.reply}")


def _print_messages(messages: tuple[requests.Message, ...]) -> None:
    for message in messages:
        _say(f"── {message.role}\n{message.content}")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
