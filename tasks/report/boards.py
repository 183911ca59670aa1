"""Rows of demo_leaderboard and eyt_leaderboard, one a target and metric, laid out as a board: a line for each target.

The page draws a board with bars for the intervals, `colloquy board` writes it down: both from the same `Board`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.metrics.catalogue import AWARENESS_TASKS, DIMENSION_METRIC, INTERACTION_DIMENSIONS, LABELS, METRICS
from tasks.report import axes, numbers
from tasks.report.blocks import Bar, BoardBlock, Cell, Head, Line, Matrix, Score
from tasks.report.questions import QueryResult, Record

DEMO_COLUMNS = ("overall_pooled", "overall_mean", "awareness", *AWARENESS_TASKS, "interaction", *INTERACTION_DIMENSIONS)
EYT_OBJECTIVE = (
    *("satisfaction", "ficr"),
    *(f"{label}_accuracy" for label in LABELS),
    *("drift_latent", "alignment", "t_actual"),
)
EYT_SUBJECTIVE = tuple(
    f"{metric}_{kind}" for kind in ("weighted", "unweighted") for metric in DIMENSION_METRIC.values()
)
FAULTS = ("void_share", "target_fault_share")
EYT_FURTHER = (
    *(f"{label}_macro_f1" for label in LABELS),
    *("unreadable_share", "drift_explicit", "drift_pair", "final_intent_undecided", *FAULTS),
)
EYT_COLUMNS = (*EYT_OBJECTIVE, *EYT_SUBJECTIVE, *EYT_FURTHER)
OPEN = {
    *("overall_pooled", "awareness", "interaction"),
    *("satisfaction", "ficr", "latent_accuracy", "emotion_accuracy", "drift_latent"),
    *(f"{metric}_weighted" for metric in DIMENSION_METRIC.values()),
}
"""The metrics that stand on the page at first; the others can be switched on."""
FACTS: dict[str, str] = {
    "family": "family",
    "access": "weights",
    "thinking": "thinking",
    "target_prompt_tokens": "tokens read",
    "target_completion_tokens": "tokens written",
    "cost_usd": "cost $",
}
"""Of targets (columns of cost_by_target), and how readers call them."""

ENOUGH = 20
"""Dialogues from which bootstrap intervals are about as wide as they say."""
MOST_NAMED = 6
FEWEST_IN_MATRIX = 3
MUCH_VOID = 0.05
"""The share of void units from which they stand out."""

LEVEL = 0.05
"""Of the tests."""

BEST, TIES, APART = "best", "ties", "apart"


@dataclass(frozen=True, slots=True)
class Board:
    """Targets by metrics, the best on the first of `metrics` on top. `scores`: by target, then metric, rows of the
    leaderboard; `facts`: what the targets are and took, where it is known. A metric that no target has is left out."""

    metrics: tuple[str, ...]
    targets: tuple[str, ...]
    scores: Mapping[str, Mapping[str, Record]]
    facts: Mapping[str, Record]
    source: QueryResult

    @property
    def headline(self) -> str:
        return self.metrics[0]

    def unit_of(self, metric: str) -> Record:
        """A row of the metric: they share unit and n_unit."""
        return next(cells[metric] for cells in self.scores.values() if metric in cells)


def read_board(answer: QueryResult, metrics: Sequence[str], facts: Mapping[str, Record] | None = None) -> Board | None:
    """The board of a leaderboard's rows of one pool and language, the primary ones of the metrics first; None where no
    row has one of them."""
    scores: dict[str, dict[str, Record]] = {}
    for record in answer.records:
        scores.setdefault(record["target"], {})[record["metric"]] = record
    primary = {record["metric"] for record in answer.records if record.get("is_primary")}
    there = tuple(
        metric
        for metric in sorted(metrics, key=lambda metric: metric not in primary)
        if any(metric in cells for cells in scores.values())
    )
    if not there:
        return None
    return Board(there, tuple(order_targets(scores, there[0])), scores, facts or {}, answer)


def order_targets(scores: Mapping[str, Mapping[str, Record]], headline: str) -> list[str]:
    """Targets by their rank on the headline metric, then by its value, the best first; those without a value last, then
    by name. (A value may rest on judges that others lack; a rank does not.)"""
    sign = 1.0 if METRICS[headline].better == "low" else -1.0

    def place(target: str) -> tuple[bool, int, float, str]:
        record = scores[target].get(headline, {})
        value = record.get("value")
        return value is None, record.get("rank") or len(scores), sign * (value or 0.0), target

    return sorted(scores, key=place)


def say_who_leads(board: Board) -> str:
    """Who is best on the headline metric, and who may be, in a sentence that claims no more than the numbers."""
    label = METRICS[board.headline].label
    best = board.targets[0]
    record = board.scores[best].get(board.headline) or {}
    if record.get("value") is None:
        return f"No target has a score of {label}."
    value = numbers.number(record["value"], record["unit"])
    among = numbers.plural(record.get("ranked_among") or 1, "target")
    interval = numbers.interval(record["ci_low"], record["ci_high"], record["unit"])
    ends = f" (95 % interval {interval})" if interval else ""
    told = f"First in {label} of {among}: {best}, {value}{ends}, n {record['n']}."
    others = [
        target for target in board.targets[1:] if (board.scores[target].get(board.headline) or {}).get("may_equal_best")
    ]
    if (record.get("ranked_among") or 0) < 2:
        return told
    if not others:
        return f"{told} With 95\u00a0% confidence it is the best of them."
    named = ", ".join(others) if len(others) <= MOST_NAMED else f"{', '.join(others[:MOST_NAMED])} and others"
    return f"{told} With 95\u00a0% confidence {numbers.plural(len(others), 'other')} may be as good: {named}."


def draw_board(
    board: Board, caption: str, *, of: str = "target", folded: bool = False, shown: Collection[str] | None = None
) -> BoardBlock:
    """The board as the page shows it. `shown`: the metrics that stand there at first; all others can be switched on."""
    shown = board.metrics if shown is None else shown
    heads = tuple(
        Head(
            metric,
            METRICS[metric].label,
            numbers.scale(board.unit_of(metric)["unit"]),
            board.unit_of(metric)["n_unit"],
            BETTER[METRICS[metric].better],
            shown=metric in shown or metric == board.headline,
        )
        for metric in board.metrics
    )
    bars = {metric: _draw_bars(board, metric) for metric in board.metrics}
    ranked = any((cells.get(board.headline, {}).get("ranked_among") or 0) > 1 for cells in board.scores.values())
    counted = any("units" in cells.get(board.headline, {}) for cells in board.scores.values())
    known = [board.facts.get(target, {}) for target in board.targets]
    facts = [name for name in FACTS if any(of.get(name) is not None for of in known)]
    return BoardBlock(
        caption,
        of,
        heads,
        tuple(Cell(FACTS[name], name not in ("family", "access", "thinking")) for name in facts),
        tuple(
            Line(
                target,
                *(_write_rank(board.scores[target].get(board.headline)) if ranked else ("", "")),
                tuple(
                    make_score(board.scores[target].get(metric), bars[metric].get(target)) for metric in board.metrics
                ),
                tuple(_count_units(board.scores[target].get(board.headline))) if counted else (),
                tuple(_write_fact(name, board.facts.get(target, {}).get(name)) for name in facts),
            )
            for target in board.targets
        ),
        board.source,
        ranked=ranked,
        counted=counted,
        folded=folded,
    )


def make_score(record: Record | None, bar: Bar | None = None) -> Score:
    """One number with its n, interval, what is missing from it, and its mark against the best target."""
    if record is None:
        return Score(numbers.MISSING, "", "")
    unit = record["unit"]
    return Score(
        value=numbers.number(record["value"], unit),
        interval=numbers.interval(record["ci_low"], record["ci_high"], unit),
        n=numbers.count(record["n"]),
        note=", ".join(_name_gaps(record)),
        mark=_mark(record),
        sort=record["value"],
        bar=bar,
        worst=numbers.interval(record.get("worst_low"), record.get("worst_high"), unit),
    )


def _name_gaps(record: Record) -> Iterator[str]:
    """What is missing from a score, in the open: lost conversations as conversations, whatever its n counts."""
    if record["n_unscored"]:
        yield f"{numbers.count(record['n_unscored'])} unscored"
    if record.get("units_void"):
        kind = "" if record["n_unit"] == "score" else "conversations "
        yield f"{numbers.count(record['units_void'])} of {numbers.count(record['units'])} {kind}void"
    elif record["n_fault"]:
        yield f"{numbers.count(record['n_fault'])} void"
    if record.get("absent_judges"):
        yield f"without {record['absent_judges']}"
    if record.get("behind_on_common"):
        yield f"behind {record['behind_on_common']} on what both have done"


def _draw_bars(board: Board, metric: str) -> dict[str, Bar]:
    """By target, where its interval and value lie on the axis that all targets share, in percent of its length."""
    records = {target: cells[metric] for target, cells in board.scores.items() if metric in cells}
    known = {target: record for target, record in records.items() if record["value"] is not None}
    if not any(record["ci_low"] is not None for record in known.values()):
        return {}
    values = [record["value"] for record in known.values()]
    ends = [record[end] for record in known.values() for end in ("ci_low", "ci_high") if record[end] is not None]
    low, high = axes.choose_axis(records[next(iter(known))]["unit"], values, ends) or (
        min([*values, *ends]),
        max([*values, *ends]),
    )
    width = (high - low) or 1.0

    def percent(value: float) -> float:
        return round(100 * (value - low) / width, 1)

    return {
        target: Bar(
            percent(record["value"]),
            percent(record["value"] if record["ci_low"] is None else record["ci_low"]),
            percent(record["value"] if record["ci_high"] is None else record["ci_high"]),
        )
        for target, record in known.items()
    }


def _write_rank(record: Record | None) -> tuple[str, str]:
    """Its place by the headline metric, and the places that the data leave it."""
    if record is None or record.get("rank") is None:
        return numbers.MISSING, ""
    low, high = record["rank_low"], record["rank_high"]
    return str(record["rank"]), f"{low}–{high}" if low < high else f"{low}"


def draw_matrix(answer: QueryResult, board: Board, metric: str) -> Matrix | None:
    """Who beats whom on a metric, of the rows of head_to_head of one pool and language, in the board's order; None for
    fewer than three targets, of which the board says it all."""
    found: dict[tuple[str, str], Record] = {}
    for record in answer.where(metric=metric).records:
        found[record["target_a"], record["target_b"]] = record
        ends = {"difference_low": record["difference_high"], "difference_high": record["difference_low"]}
        turned = {name: None if value is None else -value for name, value in ends.items()}
        found[record["target_b"], record["target_a"]] = {**record, **turned, "difference": -record["difference"]}
    if len(board.targets) < FEWEST_IN_MATRIX or not found:
        return None
    unit, declared = METRICS[metric].unit, METRICS[metric]
    sign = -1.0 if declared.better == "low" else 1.0

    def cell(row: str, column: str) -> Score:
        record = found.get((row, column))
        if record is None:
            return Score("" if row == column else numbers.MISSING, "", "")
        mark = ("ahead" if sign * record["difference"] > 0 else "behind") if record["is_apart"] else ""
        interval = numbers.interval(record["difference_low"], record["difference_high"], unit)
        plus = "+" if record["difference"] > 0 else ""
        value = f"{plus}{numbers.number(record['difference'], unit)}"
        return Score(value, interval, numbers.count(record["n"]), mark=mark)

    return Matrix(
        f"Head to head on {declared.label}: the row's less the column's on what both have done; coloured where the two "
        "are surely not equal, with 95\u00a0% confidence over all pairs together, as in the ranks.",
        board.targets,
        tuple(tuple(cell(row, column) for column in board.targets) for row in board.targets),
        answer,
    )


def _count_units(record: Record | None) -> Iterator[Cell]:
    """How many units the target has that are not void, and how many are."""
    if record is None:
        yield from (Cell(numbers.MISSING, True), Cell(numbers.MISSING, True))
        return
    units, void = record["units"], record["units_void"]
    share = f" ({numbers.percent(100 * void / units)} %)" if void else ""
    yield Cell(numbers.count(units - void), True, units - void)
    yield Cell(f"{numbers.count(void)}{share}", True, void, stands_out=void > MUCH_VOID * units)


def _write_fact(name: str, value: Any) -> Cell:
    if value is None and name != "cost_usd":
        return Cell(numbers.MISSING, name.endswith("_tokens"))
    if name == "thinking":
        return Cell("yes" if value else "no")
    if name == "cost_usd":
        return Cell(numbers.money(value), True, value)
    if name.endswith("_tokens"):
        return Cell(numbers.short(value), True, value)
    return Cell(str(value))


def _mark(record: Record) -> str:
    if record["is_best"]:
        return BEST
    return TIES if record["may_equal_best"] else APART if record["is_not_compared"] else ""


BETTER = {"high": "higher is better", "low": "lower is better", None: ""}


def explain_marks(boards: Sequence[BoardBlock | None]) -> str:
    """What the marks mean, if any board has one, and why a score lacks its interval, if any does."""
    scores = [one for each in boards if each is not None for line in each.lines for one in line.scores]
    return " ".join(text for text in (_marks({one.mark for one in scores}), _intervals(scores)) if text)


def _marks(marks: set[str]) -> str:
    if not marks & {BEST, TIES, APART}:
        return ""
    apart = (
        " ? marks those that are compared with none: they have fewer than two dialogues in common with the best, or "
        "met other conditions."
    )
    return (
        "Bold is the best value of a column. ≈ marks the others that may be the best: with 95\u00a0% confidence over "
        "all pairs of targets together, compared on what both have done, none is better than they are. Beside a rank "
        f"stand the places that the data leave a target, in the same way.{apart if APART in marks else ''}"
    )


def _intervals(scores: Sequence[Score]) -> str:
    known = [one for one in scores if one.sort is not None]
    if not known:
        return ""
    without = (
        " A score without an interval rests on fewer than two dialogues, or on dialogues that are all alike."
        if not all(one.interval for one in known)
        else ""
    )
    worst = (
        " In red beside a score: where it could lie if all void ones had the lowest, or the highest value of the scale."
        if any(one.worst for one in scores)
        else ""
    )
    bars = "Bars are intervals of 95\u00a0%, bootstrapped by dialogue; all bars of a column share one axis."
    return f"{bars}{without}{worst}"


def warn_of_claims(records: Sequence[Record]) -> Iterator[str]:
    """What a reader has to know before believing a board's comparisons: judges that are absent, tests that cannot come
    out, dialogues that are not independent."""
    absent: dict[str, set[str]] = {}
    for record in records:
        if record["absent_judges"]:
            absent.setdefault(record["absent_judges"], set()).add(record["target"])
    common = sorted({record["compared_by_judges"] for record in records if record["compared_by_judges"]})
    for judges, targets in sorted(absent.items()):
        yield (
            f"{judges} judged fewer than half of what there is of {', '.join(sorted(targets))}: those scores rest on "
            "the other judges of the panel, by its rule."
        )
    if common:
        yield f"Targets are compared and ranked by the judgements of {'; '.join(common)} alone."
    least = max((record["p_holm_least"] or 0.0 for record in records), default=0.0)
    if least > LEVEL:
        yield (
            f"There are too few resamples: after Holm's correction no p of a primary metric can be below {least:.2f}. "
            "Raise metrics.resamples."
        )
    widest = max((record["widened"] or 1.0 for record in records), default=1.0)
    if widest > 1:
        yield (
            "Dialogues share characters, so that they are not independent: intervals and differences are up to "
            f"{widest:.1f} times as wide as of independent ones."
        )


def explain_tests(records: Sequence[Record]) -> str:
    """Which metrics are tested, and that the others are not."""
    primary = [metric for metric in METRICS if any(one["metric"] == metric and one["is_primary"] for one in records)]
    if not primary:
        return ""
    named = " and ".join(METRICS[metric].label for metric in primary)
    together = "their p-values are corrected, and their ranks hold, together" if len(primary) > 1 else "it is tested"
    return f"Named beforehand: {named}; {together}. All other columns are descriptive, each by itself."


def fewest_conversations(records: Sequence[Record], columns: Collection[str]) -> int | None:
    """On how few conversations a score of the columns rests; None where none is counted in conversations."""
    found = [
        record["n"]
        for record in records
        if record["metric"] in columns and record["n_unit"] == "conversation" and record["value"] is not None
    ]
    return min(found, default=None)


def fewest_dialogues(records: Sequence[Record], contents: Sequence[Record]) -> int | None:
    """On how few dialogues a score of DEMO rests, at most: as many as it has scores, and as the task has dialogues."""
    scores = [record["n"] for record in records if record["metric"] in DEMO_COLUMNS and record["value"] is not None]
    tasks = Counter[str]()
    for record in contents:
        if record["part"] in ("awareness_items", "interaction_episodes"):
            task = record["of_it"] if record["part"] == "awareness_items" else "interaction"
            tasks[task] += record["from_dialogues_or_personas"]
    return min([*scores, *tasks.values()]) if scores else None


def warn_of_few(n: int | None) -> str:
    """A warning where scores rest on fewer dialogues than the bootstrap needs, else nothing."""
    if n is None or n >= ENOUGH:
        return ""
    return (
        f"Scores here rest on as few as {numbers.plural(n, 'dialogue')}. From fewer than {ENOUGH}, bootstrap intervals "
        "and p-values are too narrow: they promise more than the data hold."
    )
