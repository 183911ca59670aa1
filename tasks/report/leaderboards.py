"""Rows of demo_leaderboard and eyt_leaderboard, one a target and metric, laid out as a board: targets by metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from tasks.metrics.catalogue import AWARENESS_TASKS, DIMENSION_METRIC, INTERACTION_DIMENSIONS, LABELS, METRICS
from tasks.report import numbers
from tasks.report.blocks import Head, Leaderboard, Score
from tasks.report.questions import QueryResult, Record

DEMO_COLUMNS = ("overall_pooled", "overall_mean", "awareness", *AWARENESS_TASKS, "interaction", *INTERACTION_DIMENSIONS)
EYT_OBJECTIVE = (
    *(f"{label}_accuracy" for label in LABELS),
    *("drift_latent", "alignment", "ficr", "satisfaction", "t_actual"),
)
EYT_SUBJECTIVE = tuple(
    f"{metric}_{kind}" for metric in DIMENSION_METRIC.values() for kind in ("weighted", "unweighted")
)
FAULTS = ("void_share", "target_fault_share")
EYT_FURTHER = (
    *(f"{label}_macro_f1" for label in LABELS),
    *("unreadable_share", "drift_explicit", "drift_pair", "final_intent_undecided", *FAULTS),
)

ENOUGH = 20
"""Dialogues from which bootstrap intervals are about as wide as they say."""

LEVEL = 0.05
"""Of the tests."""

BEST, TIES, APART = "best", "ties", "apart"


def make_board(
    answer: QueryResult,
    caption: str,
    columns: Sequence[str],
    headline: str,
    *,
    of: str = "target",
    folded: bool = False,
) -> Leaderboard | None:
    """The board of an answer's rows (of one pool and language); None when no row has one of the metrics.

    Targets stand in the order of their `headline` metric, the best first.
    """
    by_target: dict[str, dict[str, Record]] = {}
    for record in answer.records:
        by_target.setdefault(record["target"], {})[record["metric"]] = record
    there = [metric for metric in columns if any(metric in cells for cells in by_target.values())]
    if not there:
        return None
    heads = [_make_head(metric, by_target) for metric in there]
    scores = {target: [make_score(cells.get(metric)) for metric in there] for target, cells in by_target.items()}
    ranked = {
        target: cells[headline]
        for target, cells in by_target.items()
        if (cells.get(headline, {}).get("ranked_among") or 0) > 1
    }
    if ranked:
        among = max(record["ranked_among"] for record in ranked.values())
        heads.insert(0, Head("rank", "rank", f"{METRICS[headline].label}, of {among}", "target"))
        for target in by_target:
            scores[target].insert(0, _make_rank(ranked.get(target)))
    return Leaderboard(
        caption,
        tuple(heads),
        tuple((target, tuple(scores[target])) for target in rank_targets(by_target, headline)),
        answer,
        of,
        folded,
    )


def rank_targets(by_target: Mapping[str, Mapping[str, Record]], headline: str) -> list[str]:
    """Targets, the best on the headline metric first; those without a value last, then by name."""
    sign = 1.0 if METRICS[headline].better == "low" else -1.0

    def place(target: str) -> tuple[bool, float, str]:
        value = by_target[target].get(headline, {}).get("value")
        return value is None, sign * (value or 0.0), target

    return sorted(by_target, key=place)


def make_score(record: Record | None) -> Score:
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
    if record.get("worst_low") is not None:
        low, high = (numbers.number(record[end], record["unit"]) for end in ("worst_low", "worst_high"))
        yield f"worst cases {low} to {high}"
    if record.get("absent_judges"):
        yield f"without {record['absent_judges']}"
    if record.get("behind_on_common"):
        yield f"behind {record['behind_on_common']} on what both have done"


def _make_rank(record: Record | None) -> Score:
    """Its place by the headline metric, with the places that the data leave it."""
    if record is None:
        return Score(numbers.MISSING, "", "")
    low, high = record["rank_low"], record["rank_high"]
    return Score(str(record["rank"]), f"{low} to {high}" if low < high else f"{low}", "", sort=record["rank"])


def _mark(record: Record) -> str:
    if record["is_best"]:
        return BEST
    return TIES if record["may_equal_best"] else APART if record["is_not_compared"] else ""


BETTER = {"high": "higher is better", "low": "lower is better", None: ""}


def _make_head(metric: str, by_target: Mapping[str, Mapping[str, Record]]) -> Head:
    one = next(cells[metric] for cells in by_target.values() if metric in cells)
    declared = METRICS[metric]
    return Head(metric, declared.label, numbers.scale(one["unit"]), one["n_unit"], BETTER[declared.better])


def explain_marks(boards: Sequence[Leaderboard | None]) -> str:
    """What the marks mean, if any board has one, and why a score lacks its interval, if any does."""
    scores = [one for each in boards if each is not None for _, scores in each.rows for one in scores]
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
        "all pairs of targets together, compared on what both have done, none is better than they are. Below a rank "
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
        " Worst cases: its value if all void ones had the lowest, or the highest value of the scale."
        if any("worst cases" in one.note for one in scores)
        else ""
    )
    return f"Intervals of 95\u00a0% are bootstrapped by dialogue.{without}{worst}"


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
