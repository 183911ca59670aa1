"""Scores, intervals, comparisons and agreement of a build, from what its judges and people said; asks no model.

Reads what the build has of both benchmarks: items, predictions and their scores; episodes, interactions and
their scores; chat seeds, conversations, turns and their judgements; reviews, votes and verdicts; human reviews
and ratings; scenes and seed dialogues, whose people stand in for real users where no others are named; pairings and
dialogues, whose characters say which dialogues are not independent. Writes metrics, comparisons, ranks, agreement,
turn_drifts (the per-turn values behind drift and alignment), user_likeness and models.

Rows of `metrics`, null in a key column meaning all of them:

* a leaderboard is `target` × (`pool`, for EYT-Bench) × (`language`), with `judge`, `simulator`, `partner`,
  `goal_type` and `slice` null: the configured panel over everything;
* `judge` set: that judge alone, for the metrics that need one;
* `simulator` (EYT-Bench), `goal_type` (DEMO) or `partner` (DEMO's interaction) set: that part of it;
* `slice` set: {"alpha": a} weighted scores under another α; {"label": l} accuracy on turns with that gold label;
  {"turn": t} and {"part": "early" | "late"} by place in the dialogue; with `target` null {"family": f}, all targets of
  a model family together;
* `target` null: `<dimension>_rank_tau` and `_rank_flips`, slice {"alpha": [a, b], …}, and the simulator's health,
  by `simulator` and `pool`.

The value of all pools is the plain mean of the pools' own. The panel is `judging.judges` without those that see a
sample only. Input rows are predictions, interactions and conversations.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal

from threadpoolctl import threadpool_limits

from tasks.foundation.errors import ConfigError
from tasks.foundation.ids import digest, seed_of
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.settings import Settings
from tasks.foundation.settings.sections import MetricsSection
from tasks.foundation.stage import Prepared, Stage, StageContext
from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.tables.evaluation import Agreement, Comparison, UserLikeness
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.encoder import Encoder
from tasks.metrics.catalogue import METRICS, OF_DEMO
from tasks.metrics.demo_benchmark import DemoBench
from tasks.metrics.drift import Encode
from tasks.metrics.eyt_benchmark import EytBench
from tasks.metrics.eyt_metrics import make_drift_rows, trajectory_of
from tasks.metrics.eyt_study import Study
from tasks.metrics.label_agreement import (
    Found,
    collect_review_ratings,
    collect_vote_ratings,
    human_ratings,
    measure_human_agreement,
    measure_label_agreement,
)
from tasks.metrics.likeness import Compared, compare_users
from tasks.metrics.model_rows import (
    describe_models,
    find_aliases_in_data,
    find_aliases_in_settings,
    find_thinking_pairs,
    make_model_rows,
)
from tasks.metrics.real_users import read_real_users, read_seed_users
from tasks.metrics.repeats import measure_position, measure_retest
from tasks.metrics.words import Said

READS = (
    "awareness_items",
    "awareness_predictions",
    "awareness_scores",
    "interaction_episodes",
    "interactions",
    "interaction_scores",
    "chat_seeds",
    "conversations",
    "conversation_turns",
    "turn_judgements",
    "final_intent_judgements",
    "judgement_repeats",
    "reviews",
    "votes",
    "vote_repeats",
    "verdicts",
    "human_reviews",
    "human_ratings",
    "scenes",
    "seed_dialogues",
    "pairings",
    "dialogues",
)
MADE_FOR_TARGETS = ("awareness_predictions", "interactions", "conversations")
"""A target of which a stage has no row left, though it has run for it, has a row in the metrics all the same."""

log = logging.getLogger(__name__)

LEVEL = 0.05
"""Of the tests."""

Scope = Literal["annotators", "voters", "judges", "human", "judge_human", "position", "retest", "variance"]


def check(context: StageContext) -> None:
    """ConfigError for a primary metric that there is not, or of which neither end is better."""
    primary = context.settings.metrics.primary
    for benchmark, named in (("demo", primary.demo), ("eyt", primary.eyt)):
        known = [
            name
            for name, metric in METRICS.items()
            if metric.better is not None and (name in OF_DEMO) == (benchmark == "demo")
        ]
        if unknown := sorted({*named} - {*known}):
            raise ConfigError(
                f"metrics.primary.{benchmark} names {', '.join(unknown)}; expected some of {', '.join(known)}"
            )


@threadpool_limits.wrap(limits=1, user_api="blas")
def prepare(context: StageContext) -> Prepared:
    """Everything; there are no items to work on.

    On one thread: the matrix products are many and small, and threads of BLAS that wait for the next one keep
    processors busy that others could use.
    """
    settings = context.settings
    bootstrap = Bootstrap(settings.metrics.resamples, seed_of(settings.run.seed, "metrics"))
    tried = {table: context.members(table) for table in MADE_FOR_TARGETS}
    primary = settings.metrics.primary
    demo = DemoBench.of(context.read, settings.judging.panel, primary.demo, bootstrap, tried.__getitem__)
    eyt = EytBench.of(context.read, settings.judging.panel, settings.metrics, bootstrap, tried["conversations"])
    named = {*find_aliases_in_settings(settings), *find_aliases_in_data(context.read)}
    models = make_model_rows(named.union(*tried.values()), context.model)
    pairs = find_thinking_pairs(models)
    families = {row.alias: row.family for row in models}
    demo_metrics, demo_comparisons, demo_ranks = demo.metrics_and_comparisons(pairs, families)
    trajectory = trajectory_of(eyt.study, lambda language: _encode_in(context, language))
    eyt_metrics, eyt_comparisons, eyt_ranks = eyt.metrics_and_comparisons(trajectory, pairs, families)
    _warn_of_few_resamples([*demo_comparisons, *eyt_comparisons], bootstrap)
    return Prepared(
        items=[],
        rows={
            "metrics": [*demo_metrics, *eyt_metrics],
            "comparisons": [*demo_comparisons, *eyt_comparisons],
            "ranks": [*demo_ranks, *eyt_ranks],
            "agreement": list(_agreement(context, demo, eyt, bootstrap)),
            "turn_drifts": make_drift_rows(eyt.study, trajectory),
            "models": models,
            "user_likeness": list(_compare_users(context, eyt.study, bootstrap)),
        },
        accounting=_accounting(context, demo, eyt),
    )


def _warn_of_few_resamples(comparisons: Iterable[Comparison], bootstrap: Bootstrap) -> None:
    """Where no difference, however large, could be told apart."""
    least = max((row.p_holm_least or 0.0 for row in comparisons), default=0.0)
    if least > LEVEL:
        enough = math.ceil(least * (bootstrap.resamples + 1) / LEVEL) - 1
        log.warning(
            "after Holm's correction no p can be below %.3f with metrics.resamples = %d; from %d on it can be below %g",
            *(least, bootstrap.resamples, enough, LEVEL),
        )


def _agreement(context: StageContext, demo: DemoBench, eyt: EytBench, bootstrap: Bootstrap) -> Iterator[Agreement]:
    reviews, votes = context.read("reviews"), context.read("votes")
    people = human_ratings(context.read("verdicts"), context.read("human_reviews"))
    yield from _rows("annotators", measure_label_agreement(collect_review_ratings(reviews), bootstrap))
    yield from _rows("voters", measure_label_agreement(collect_vote_ratings(votes, reviews), bootstrap))
    yield from _rows("human", measure_human_agreement(people, bootstrap))
    yield from _rows("judges", demo.judge_agreement())
    yield from _rows("judges", eyt.judge_agreement())
    yield from _rows("human", eyt.human_agreement())
    yield from _rows("judge_human", eyt.judge_human_agreement())
    yield from _rows("position", measure_position(votes, context.read("vote_repeats"), reviews, bootstrap))
    yield from _rows("retest", measure_retest(context.read("judgement_repeats"), bootstrap))
    yield from _rows("variance", demo.variance())
    yield from _rows("variance", eyt.variance())


def _compare_users(context: StageContext, study: Study, bootstrap: Bootstrap) -> Iterator[UserLikeness]:
    """Each simulator's users against real ones of the same language."""
    section = context.settings.metrics
    sides = study.list_user_sides()
    if not sides:
        return
    sources = section.real_users
    real = read_seed_users(context.read) if sources is None else read_real_users([*map(context.pinned, sources)])
    for (simulator, language), (dialogues, clusters) in sides.items():
        if language in real:
            people = real[language]
            theirs = Said.of(people.dialogues)
            for found in compare_users(dialogues, clusters, theirs, section.mattr_window, bootstrap):
                yield _make_likeness_row(simulator, language, people.name, found)


def _make_likeness_row(simulator: str, language: str, real: str, found: Compared) -> UserLikeness:
    return UserLikeness(
        simulator=simulator,
        language=language,
        real=real,
        measure=found.measure,
        unit=found.unit,
        mean_simulated=found.means[0],
        mean_real=found.means[1],
        difference=found.difference,
        difference_low=found.difference_ends[0],
        difference_high=found.difference_ends[1],
        distance=found.distance,
        distance_low=found.distance_ends[0],
        distance_high=found.distance_ends[1],
        n_simulated=found.n[0],
        n_real=found.n[1],
        edges=list(found.edges),
        simulated=list(found.histograms[0]),
        people=list(found.histograms[1]),
    )


def _rows(scope: Scope, found: Iterable[Found]) -> Iterator[Agreement]:
    for one in found:
        yield Agreement(
            scope=scope,
            category=one.category,
            statistic=one.agreed.statistic,
            raters=" × ".join(one.raters),
            value=one.agreed.value,
            ci_low=one.agreed.ci_low,
            ci_high=one.agreed.ci_high,
            n=one.agreed.n,
        )


def _encode_in(context: StageContext, language: Language) -> Encode | None:
    if language == "en":
        return lambda texts: context.encoder().encode(texts)
    similarity = context.similarity(language)
    return similarity.encode if isinstance(similarity, Encoder) else None


def _accounting(context: StageContext, demo: DemoBench, eyt: EytBench) -> Accounting:
    """Every prediction, interaction and conversation counts in a score, or is void by a fault."""
    tables = ("awareness_predictions", "interactions", "conversations")
    n_in = sum(context.read(table).height for table in tables)
    here = demo.study.predictions, demo.study.interactions, eyt.study.conversations.filter(eyt.study.present)
    void = int((eyt.study.void & eyt.study.present).sum())
    played = demo.study.interactions["interaction_id"].is_not_null() & demo.study.interactions["void"]
    void += int(played.sum())
    known = int((~here[0]["void"]).sum()) + int(here[1]["interaction_id"].is_not_null().sum()) + here[2].height
    left_out = {"void": void, "no_longer_referred_to": n_in - known}
    return Accounting(n_in, known - void, {reason: count for reason, count in left_out.items() if count})


def depends_on(settings: Settings) -> list[object]:
    """What the rows depend on beside the stage's own section: the configured panel."""
    return [digest("panel", settings.judging.panel)]


def facts_of_models(settings: Settings, models: Mapping[str, ModelSpec], used: Collection[str]) -> object:
    """What the rows say of the models that the settings name or that the build's other stages have used."""
    named = sorted({*find_aliases_in_settings(settings), *used} & set(models))
    return describe_models({alias: models[alias] for alias in named})


STAGE = Stage(
    name="metrics",
    doc="Everything above → metrics, comparisons and agreement, each with n and interval.",
    section=MetricsSection,
    reads=READS,
    reads_if_made=READS,
    asks_members=MADE_FOR_TARGETS,
    check=check,
    prepare=prepare,
    prepared=("metrics", "comparisons", "ranks", "agreement", "turn_drifts", "models", "user_likeness"),
    taxonomies=("explicit_intent", "latent_intent"),
    encodes=True,
    sources=lambda settings: settings.metrics.real_users or (),
    files=depends_on,
    model_facts=facts_of_models,
)
