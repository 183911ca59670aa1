"""Blocks on how conversations went: how long they grew, how far targets drifted, which labels they took for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tasks.metrics.catalogue import METRICS
from tasks.report import charts, numbers
from tasks.report.blocks import Block, make_filled_table
from tasks.report.questions import QueryResult

ALL = "all"
"""Of pools and languages: together."""
UNREADABLE = "unreadable"


def name_pool(pool: str) -> str:
    """As headings have it."""
    return "All pools" if pool == ALL else f"Pool {pool}"


def show_lengths(answer: QueryResult) -> Iterator[Block | None]:
    """How many conversations ended after how many turns."""
    for pool in answer.values("pool"):
        counts: Counter[int] = Counter()
        for record in answer.where(pool=pool).records:
            counts[record["turns"]] += record["conversations"]
        longest = max(counts)
        bars = [{"turns": turns, "conversations": counts[turns]} for turns in range(longest + 1)]
        caption = f"Answered turns of the conversations of all targets, pool {pool}; void ones are left out."
        yield charts.bars(caption, bars, "turns", {"conversations": "conversations"}, "conversations")
    yield make_filled_table(answer, "Conversations by pool, target and answered turns.", folded=True)


def show_drifts(by_turn: QueryResult, reached: QueryResult) -> Iterator[Block | None]:
    """Drift of the latent intent over the turns, and whether targets that drift reach less."""
    for pool in by_turn.values("pool"):
        caption = f"Intent drift by turn, {name_pool(pool).lower()}; later turns rest on fewer conversations."
        records = by_turn.where(pool=pool).records
        yield charts.lines(caption, records, "turn", {"drift_latent": METRICS["drift_latent"].label}, "cosine")
    yield make_filled_table(by_turn, "Drift by turn.", drop=("metric", "unit"), folded=True)
    for pool in reached.values("pool"):
        of = reached.where(pool=pool).records
        rho = of[0]["spearman_rho"]
        said = "not computable" if rho is None else numbers.number(rho, "rho")
        caption = (
            f"Drift and final intents reached, {name_pool(pool).lower()}: Spearman's ρ {said} over {len(of)} targets."
        )
        axes = {"drift": "intent drift", "ficr": "FICR"}
        yield charts.scatter(caption, of, "drift", "ficr", axes)
    yield make_filled_table(reached, "Drift and FICR by pool and target.", folded=True)


def show_confusions(answer: QueryResult) -> Iterator[Block | None]:
    """For each kind of label, what the labels were taken for by all targets together; then the counts by target."""
    for label in answer.values("label"):
        turns: Counter[tuple[str, str]] = Counter()
        for record in answer.where(label=label).records:
            turns[record["gold"], record["predicted"] or UNREADABLE] += record["turns"]
        of_gold = Counter[str]()
        for (gold, _), n in turns.items():
            of_gold[gold] += n
        records = [
            {"gold": f"{gold} ({of_gold[gold]})", "predicted": predicted, "percent": 100 * n / of_gold[gold]}
            for (gold, predicted), n in sorted(turns.items())
        ]
        caption = f"What each {label} was taken for, in % of its turns (how many stands beside it), all targets."
        yield charts.heatmap(caption, records, "gold", "predicted", "percent", label.capitalize())
    yield make_filled_table(answer, "Gold and predicted labels by target.", folded=True)
