"""Rows of demo_leaderboard and eyt_leaderboard, one a target and metric, laid out as a board: targets by metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from tasks.report import numbers
from tasks.report.blocks import Head, Leaderboard, Score
from tasks.report.questions import Answer, Record

DEMO_COLUMNS: dict[str, str] = {
    "overall_pooled": "overall, pooled",
    "overall_mean": "overall, mean of both",
    "awareness": "awareness",
    "goal": "goal",
    "persona": "persona",
    "scene": "scene",
    "utterance": "utterance",
    "interaction": "interaction",
    "goal_achievement": "goal achievement",
    "believability": "believability",
    "skillfulness": "skillfulness",
    "realistic": "realistic",
}
EYT_OBJECTIVE: dict[str, str] = {
    "explicit_accuracy": "explicit intent",
    "latent_accuracy": "latent intent",
    "emotion_accuracy": "emotion",
    "drift_latent": "intent drift",
    "alignment": "alignment",
    "ficr": "FICR",
    "satisfaction": "satisfaction",
    "t_actual": "turns",
}
EYT_SUBJECTIVE: dict[str, str] = {
    "empathy_weighted": "empathy, weighted",
    "empathy_unweighted": "empathy, unweighted",
    "persona_alignment_weighted": "persona, weighted",
    "persona_alignment_unweighted": "persona, unweighted",
    "anthropomorphic_weighted": "anthropomorphic, weighted",
    "anthropomorphic_unweighted": "anthropomorphic, unweighted",
}
EYT_FURTHER: dict[str, str] = {
    "explicit_macro_f1": "explicit, macro-F1",
    "latent_macro_f1": "latent, macro-F1",
    "emotion_macro_f1": "emotion, macro-F1",
    "unreadable_share": "unreadable labels",
    "drift_explicit": "drift, explicit",
    "drift_pair": "drift, pair",
    "final_intent_undecided": "final intent undecided",
    "void_share": "void",
    "target_fault_share": "target's fault",
}
FAULTS: dict[str, str] = {"void_share": "void", "target_fault_share": "target's fault"}
SUB_INDICATORS: dict[str, str] = {
    f"{dimension}_{part}": f"{dimension}, {part}"
    for dimension, parts in {
        "empathy": ("recognition", "attribution", "resonance", "response", "support"),
        "persona": ("style", "value", "culture", "memory", "security"),
        "anthropomorphic": ("colloquial", "emotional", "flow", "flexibility", "rhythm"),
    }.items()
    for part in parts
}

LOWER_IS_BETTER = frozenset({"drift_latent", "drift_explicit", "drift_pair", "unreadable_share"})
NEITHER = frozenset({"t_actual", "final_intent_undecided", "void_share", "target_fault_share"})

ENOUGH = 20
"""Dialogues from which bootstrap intervals are about as wide as they say."""

BEST, TIES, APART = "best", "ties", "apart"


def board(
    answer: Answer,
    caption: str,
    columns: Mapping[str, str],
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
    heads = tuple(_head(metric, columns[metric], by_target) for metric in there)
    return Leaderboard(
        caption,
        heads,
        tuple(
            (target, tuple(score(by_target[target].get(metric)) for metric in there))
            for target in ranked(by_target, headline)
        ),
        answer,
        of,
        folded,
    )


def ranked(by_target: Mapping[str, Mapping[str, Record]], headline: str) -> list[str]:
    """Targets, the best on the headline metric first; those without a value last, then by name."""
    sign = 1.0 if headline in LOWER_IS_BETTER else -1.0

    def place(target: str) -> tuple[bool, float, str]:
        value = by_target[target].get(headline, {}).get("value")
        return value is None, sign * (value or 0.0), target

    return sorted(by_target, key=place)


def score(record: Record | None) -> Score:
    """One number with its n, interval, what is missing from it, and its mark against the best target."""
    if record is None:
        return Score(numbers.MISSING, "", "")
    unit = record["unit"]
    missing = [
        f"{numbers.count(record[column])} {word}"
        for column, word in (("n_unscored", "unscored"), ("n_fault", "void"))
        if record[column]
    ]
    return Score(
        value=numbers.number(record["value"], unit),
        interval=numbers.interval(record["ci_low"], record["ci_high"], unit),
        n=numbers.count(record["n"]),
        note=", ".join(missing),
        mark=_mark(record),
        sort=record["value"],
    )


def _mark(record: Record) -> str:
    if record["is_best"]:
        return BEST
    return TIES if record["may_equal_best"] else APART if record["is_not_compared"] else ""


def _head(metric: str, label: str, by_target: Mapping[str, Mapping[str, Record]]) -> Head:
    one = next(cells[metric] for cells in by_target.values() if metric in cells)
    return Head(metric, label, numbers.scale(one["unit"]), one["n_unit"], _arrow(metric))


def _arrow(metric: str) -> str:
    if metric in NEITHER or metric.startswith("simulator_"):
        return ""
    return "lower is better" if metric in LOWER_IS_BETTER else "higher is better"


def legend(boards: Sequence[Leaderboard | None]) -> str:
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
        "Bold is the best target of a column. ≈ marks those whose paired difference to it is 0, or has a 95\u00a0% "
        f"interval that holds 0: the data do not tell them apart.{apart if APART in marks else ''}"
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
    return f"Intervals of 95\u00a0% are bootstrapped by dialogue.{without}"


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


def too_few(n: int | None) -> str:
    """A warning where scores rest on fewer dialogues than the bootstrap needs, else nothing."""
    if n is None or n >= ENOUGH:
        return ""
    return (
        f"Scores here rest on as few as {numbers.plural(n, 'dialogue')}. From fewer than {ENOUGH}, bootstrap intervals "
        "and p-values are too narrow: they promise more than the data hold."
    )
