"""A board as a wide table for a paper, a sheet or a page: Markdown, LaTeX, CSV, HTML, JSON.

Laid out as the papers have them: DEMO's Table 2, EYT-Bench's Tables 3 (objective) and 4 (subjective) with the pools
side by side. Bold is the best value of a column, ≈ marks others that may be the best (`ranks.may_be_best`).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any, Literal, get_args

import duckdb

from tasks.foundation.errors import ConfigError
from tasks.metrics.catalogue import AWARENESS_TASKS, DIMENSION_METRIC, INTERACTION_DIMENSIONS, METRICS
from tasks.report import numbers
from tasks.report.boards import BEST, FACTS, TIES, make_score, order_targets
from tasks.report.conversation_blocks import ALL
from tasks.report.questions import Record, ask

Form = Literal["md", "latex", "csv", "html", "json"]
FORMS: tuple[Form, ...] = get_args(Form)
TableName = Literal["demo", "eyt", "eyt-objective", "eyt-subjective"]
TABLES: tuple[TableName, ...] = get_args(TableName)
GROUPS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "demo": (
        ("", ("overall_pooled",)),
        ("Element awareness", (*AWARENESS_TASKS, "awareness")),
        ("Dialogue agent interaction", (*INTERACTION_DIMENSIONS, "interaction")),
    ),
    "eyt": (("", ("satisfaction", "ficr")),),
    "eyt-objective": (("", ("explicit_accuracy", "latent_accuracy", "emotion_accuracy", "drift_latent", "ficr")),),
    "eyt-subjective": (("", tuple(f"{metric}_weighted" for metric in DIMENSION_METRIC.values())),),
}
"""The columns of each table, under the heads of their groups; those of eyt stand once for each pool, and for all pools
together where the table is not one of the paper's."""


@dataclass(frozen=True, slots=True)
class WideColumn:
    """A metric over one pool (or all) under the head of its group."""

    group: str
    metric: str
    pool: str

    @property
    def label(self) -> str:
        return METRICS[self.metric].label

    @property
    def arrow(self) -> str:
        return {"high": "↑", "low": "↓", None: ""}[METRICS[self.metric].better]


@dataclass(frozen=True, slots=True)
class WideTable:
    """Targets in the order of the first column's board; `cells` by target and column: rows of the leaderboard."""

    name: TableName
    language: str
    columns: tuple[WideColumn, ...]
    targets: tuple[str, ...]
    cells: Mapping[tuple[str, WideColumn], Record]
    facts: Mapping[str, Record]

    def rank_of(self, target: str) -> Record:
        """The row that has its rank, by the first column."""
        return self.cells.get((target, self.columns[0]), {})


def read_wide(
    connection: duckdb.DuckDBPyConnection,
    name: TableName,
    *,
    language: str = ALL,
    pool: str | None = None,
    metrics: Sequence[str] = (),
) -> WideTable:
    """The table of the build that the connection shows. `pool`: that one alone; `metrics`: these in the place of the
    table's own. ConfigError for a language, pool or metric that there is none of."""
    demo = name == "demo"
    answer = ask(connection, "demo_leaderboard" if demo else "eyt_leaderboard")
    _refuse_unknown("language", language, answer.values("language"))
    answer = answer.where(language=language)
    pools = [ALL] if demo else _pools_of(name, answer.values("pool"), pool)
    for metric in metrics:
        _refuse_unknown("metric", metric, answer.values("metric"))
    groups = (("", tuple(metrics)),) if metrics else GROUPS[name]
    columns = tuple(
        WideColumn(head if demo else _name(each), metric, each)
        for each in pools
        for head, of in groups
        for metric in of
    )
    by_pool = {ALL: answer} if demo else {each: answer.where(pool=each) for each in pools}
    cells = {
        (record["target"], column): record
        for column in columns
        for record in by_pool[column.pool].where(metric=column.metric).records
    }
    scores: dict[str, dict[str, Record]] = {target: {} for target in answer.values("target")}
    for (target, column), record in cells.items():
        if column == columns[0]:
            scores[target][column.metric] = record
    facts = {record["target"]: record for record in ask(connection, "cost_by_target").records}
    return WideTable(name, language, columns, tuple(order_targets(scores, columns[0].metric)), cells, facts)


def _name(pool: str) -> str:
    return "all pools" if pool == ALL else pool


def _pools_of(name: TableName, there: Sequence[str], pool: str | None) -> list[str]:
    if pool is not None:
        _refuse_unknown("pool", pool, there)
        return [pool]
    single = sorted(each for each in there if each != ALL)
    return single if name != "eyt" or not single else [ALL, *(single if len(single) > 1 else [])]


def _refuse_unknown(what: str, found: str, there: Sequence[str]) -> None:
    if found not in there:
        known = ", ".join(sorted(there)) or "none: nothing has been scored"
        raise ConfigError(f"expected a {what} that this build has scores of ({known}), found {found!r}")


def write_table(table: WideTable, form: Form, *, intervals: bool = True) -> str:
    """The table in one of `FORMS`, with a line end. CSV and JSON always hold the intervals, for programs."""
    write: dict[Form, Callable[[], str]] = {
        "md": lambda: _markdown(table, intervals),
        "latex": lambda: _latex(table, intervals),
        "html": lambda: _html(table, intervals),
        "csv": lambda: _csv(list_rows(table)),
        "json": lambda: json.dumps(list_rows(table), ensure_ascii=False, indent=1) + "\n",
    }
    return write[form]()


def list_rows(table: WideTable) -> list[dict[str, Any]]:
    """A flat row a target: rank and the places that the data leave it, what is known of it, then each column as
    `metric` (`pool.metric` where there are several pools) with `_low`, `_high` and `_n`. Values are not rounded."""
    several = len({column.pool for column in table.columns}) > 1
    rows = []
    for target in table.targets:
        rank, facts = table.rank_of(target), table.facts.get(target, {})
        row: dict[str, Any] = {"target": target}
        row |= {name: rank.get(name) for name in ("rank", "rank_low", "rank_high")}
        row |= {name: facts.get(name) for name in FACTS}
        for column in table.columns:
            record = table.cells.get((target, column), {})
            name = f"{column.pool}.{column.metric}" if several else column.metric
            row[name] = record.get("value")
            row |= {f"{name}_low": record.get("ci_low"), f"{name}_high": record.get("ci_high")}
            row[f"{name}_n"] = record.get("n")
        rows.append(row)
    return rows


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else ["target"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _markdown(table: WideTable, intervals: bool) -> str:
    def cell(value: str, interval: str, mark: str) -> str:
        shown = f"**{value}**" if mark == BEST else f"{'≈ ' if mark == TIES else ''}{value}"
        return f"{shown} [{interval}]" if interval else shown

    def label(column: WideColumn) -> str:
        group = f"{column.group}: " if column.group else ""
        return f"{group}{column.label} {column.arrow}".strip()

    lines = [
        ["rank", "target", *map(label, table.columns)],
        ["---", "---", *("---:" for _ in table.columns)],
        *([_rank(table, target), target, *_cells(table, target, intervals, cell)] for target in table.targets),
    ]
    said = ["| " + " | ".join(re.sub(r"([|\\`<>])", r"\\\1", one) for one in line) + " |" for line in lines]
    return "\n".join([*said, "", _legend(table, intervals), ""])


def _latex(table: WideTable, intervals: bool) -> str:
    def cell(value: str, interval: str, mark: str) -> str:
        number = value.replace("−", "$-$")
        shown = rf"\textbf{{{number}}}" if mark == BEST else number + (r"$^{\approx}$" if mark == TIES else "")
        return rf"{shown} {{\scriptsize [{interval.replace('−', '$-$')}]}}" if interval else shown

    arrows = {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "": ""}
    labels = [f"{_tex(column.label)} {arrows[column.arrow]}".strip() for column in table.columns]
    groups = _spans(table)
    lines = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{rl{'r' * len(table.columns)}}}",
        r"\toprule",
    ]
    if any(head for head, _ in groups):
        heads = " & ".join(rf"\multicolumn{{{span}}}{{c}}{{{_tex(head)}}}" for head, span in groups)
        lines += [rf" & & {heads} \\", *_rules(groups)]
    lines += [rf"Rank & Model & {' & '.join(labels)} \\", r"\midrule"]
    for target in table.targets:
        cells = " & ".join(_cells(table, target, intervals, cell))
        lines.append(rf"{_rank(table, target).replace('–', '--')} & {_tex(target)} & {cells} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", f"% {_legend(table, intervals)}", ""])


def _rules(groups: Iterable[tuple[str, int]]) -> Iterator[str]:
    """A rule under the head of each group."""
    first = 3
    for head, span in groups:
        if head:
            yield rf"\cmidrule(lr){{{first}-{first + span - 1}}}"
        first += span


def _tex(text: str) -> str:
    """Text in which nothing is a command.

    >>> print(_tex("a_b & 5 % \\\\x"))
    a\\_b \\& 5 \\% \\textbackslash{}x
    """
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(sign, rf"\{sign}" if sign in "&%$#_{}" else sign) for sign in text)


def _html(table: WideTable, intervals: bool) -> str:
    def cell(value: str, interval: str, mark: str) -> str:
        shown = f"<b>{value}</b>" if mark == BEST else f"{'≈ ' if mark == TIES else ''}{value}"
        return f"{shown} <small>{interval}</small>" if interval else shown

    groups = _spans(table)
    heads = "".join(f'<th colspan="{span}">{escape(head)}</th>' for head, span in groups)
    labels = "".join(f"<th>{escape(column.label)} {column.arrow}</th>" for column in table.columns)
    lines = ["<table>", f"<caption>{escape(_legend(table, intervals))}</caption>", "<thead>"]
    if any(head for head, _ in groups):
        lines.append(f"<tr><th></th><th></th>{heads}</tr>")
    lines += [f"<tr><th>rank</th><th>target</th>{labels}</tr>", "</thead>", "<tbody>"]
    for target in table.targets:
        cells = "".join(f"<td>{one}</td>" for one in _cells(table, target, intervals, cell))
        lines.append(f"<tr><td>{_rank(table, target)}</td><th>{escape(target)}</th>{cells}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>", ""])


def _spans(table: WideTable) -> list[tuple[str, int]]:
    """The heads of groups, each with how many columns stand under it."""
    return [(head, len(list(of))) for head, of in groupby(column.group for column in table.columns)]


def _cells(table: WideTable, target: str, intervals: bool, form: Callable[[str, str, str], str]) -> Iterator[str]:
    for column in table.columns:
        score = make_score(table.cells.get((target, column)))
        ends = score.interval.replace(" to ", ", ") if intervals else ""
        yield form(score.value, ends, score.mark)


def _rank(table: WideTable, target: str) -> str:
    """`2 (1–3)`: the place, and those that the data leave it."""
    found = table.rank_of(target)
    if found.get("rank") is None:
        return numbers.MISSING
    low, high = found["rank_low"], found["rank_high"]
    return f"{found['rank']} ({low}–{high})" if low < high else f"{found['rank']}"


def _legend(table: WideTable, intervals: bool) -> str:
    """What a reader must know who sees the table alone."""
    counts = sorted({record["n"] for record in table.cells.values() if record.get("n")})
    n = f"n {counts[0]} to {counts[-1]}" if len(counts) > 1 else f"n {counts[0]}" if counts else "no scores"
    ends = " in brackets: 95 % intervals;" if intervals else ""
    language = "" if table.language == ALL else f" language {table.language};"
    return (
        f"Rank by {METRICS[table.columns[0].metric].label}, in parentheses the places that the data leave;{ends} bold: "
        f"best; ≈: may be the best with 95 % confidence;{language} {n}."
    )
