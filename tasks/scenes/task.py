"""The scenes stage.

Reads the dialogue corpora of the settings. Writes seed_dialogues (every usable one), duplicates, scenes and diversity:
goals and scene of a sample of them, one request to the distiller each (DEMO section 3.2). A seed that it calls unusable
ends as filtered, with its reason in rejects.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from tasks.foundation.demo.records import load_rows_by
from tasks.foundation.ids import content_id
from tasks.foundation.settings.sections import ScenesSection
from tasks.foundation.sources import find_files
from tasks.foundation.stage import Asker, Finished, Prepared, Rows, Stage, StageContext
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.tables import TABLES, Row, Table
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.operations import Reject
from tasks.foundation.tables.personas import Duplicate
from tasks.foundation.tables.scenes import Scene, SeedDialogue
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.dedupe import find_duplicates, warn_if_most_dropped
from tasks.foundation.texts.similarity import measure_likeness
from tasks.scenes.gather import Gathering, Writers
from tasks.scenes.goals import join_goals, without_names
from tasks.scenes.prompts import DISTIL, Distilled, distil_inputs
from tasks.scenes.sampling import Sample, draw, find_surplus
from tasks.scenes.wanted import FILTERS, filter_rules

SAMPLED = Table("sampled_seeds", SeedDialogue, ("seed_id",), "one row per seed dialogue to distil")


class UnusableSeed(Row):
    seed_id: str
    reason: str


UNUSABLE = Table("unusable_seeds", UnusableSeed, ("seed_id",), "one row per seed that the distiller calls unusable")
DRAFTS = Table("scene_drafts", Scene, ("scene_id",), "one row per distilled seed, before duplicates are dropped")

log = logging.getLogger(__name__)


def check(context: StageContext) -> None:
    """Filters that can be used, source files that are there, datasets whose commits are known."""
    filter_rules()
    for source in context.settings.scenes.sources:
        if source.file is not None:
            find_files(source.file, source.split)
        context.pinned(source)


def prepare(context: StageContext) -> Prepared:
    """Reads and filters every source; draws the seeds that are distilled before anything is paid for."""
    section, seed = context.settings.scenes, context.settings.run.seed
    with context.writer("duplicates") as duplicates:
        with context.writer("seed_dialogues") as seeds, context.writer("rejects") as rejects:
            found = Gathering(section, filter_rules(), Writers(seeds, duplicates, rejects))
            for number, source in enumerate(section.sources):
                found.read(number, context.pinned(source))
        left_out = _format_counts(found.filtered + found.failed)
        log.info("%d rows read, %d seeds; left out or failed: %s", found.n_in, found.n_seeds, left_out)
        samples = [
            draw(seeds.stored, language, section.sample.of(language), section.near_duplicate, seed)
            for language in LANGUAGES
        ]
        near = [duplicate for sample in samples for duplicate in sample.duplicates]
        duplicates.write(TABLES["duplicates"].arrow(near))
    with context.writer(SAMPLED.name) as sampled:
        for language, sample in zip(LANGUAGES, samples, strict=True):
            _log_sample(language, sample, section.sample.of(language))
            sampled.write(sample.rows)
    items = [seed_id for sample in samples for seed_id in sample.ids]
    return Prepared(
        items,
        {
            "seed_dialogues": seeds.stored,
            "duplicates": duplicates.stored,
            "rejects": rejects.stored,
            SAMPLED.name: sampled.stored,
        },
        _accounting(found, n_near=len(near), n_items=len(items)),
    )


def briefs_of(context: StageContext, items: Sequence[str]) -> Mapping[str, SeedDialogue]:
    """The seed dialogues of some items by id."""
    return load_rows_by(context.made, SAMPLED.name, SeedDialogue, "seed_id", items)


async def work(context: StageContext, seed: SeedDialogue, ask: Asker) -> Rows:
    """Goals and scene of one seed, distilled in one request, or why it has none."""
    section = context.settings.scenes
    reply: Distilled = await ask(
        DISTIL,
        distil_inputs(seed),
        language=seed.language,
        alias=section.distiller,
        purpose="distil",
        temperature=section.temperature,
        max_tokens=section.max_tokens,
    )
    if section.drop_unusable and not reply.usable:
        return {
            UNUSABLE.name: [UnusableSeed(seed_id=seed.seed_id, reason=reply.reason or "the distiller gave no reason")]
        }
    return {DRAFTS.name: [as_scene(seed, reply)]}


def as_scene(seed: SeedDialogue, reply: Distilled) -> Scene:
    """The row of a scene; names of the seed's speakers that the distiller left in its goals are taken out."""
    first, second = dict.fromkeys(turn.speaker for turn in seed.turns)
    plain: dict[str, Any] = reply.model_dump(exclude={"usable", "reason"})
    plain["goal1"] = without_names(reply.goal1, own=first, other=second, language=seed.language)
    plain["goal2"] = without_names(reply.goal2, own=second, other=first, language=seed.language)
    scene_id = content_id("scene", seed.seed_id)
    return Scene.model_validate({"scene_id": scene_id, "seed_id": seed.seed_id, "language": seed.language, **plain})


def finish(context: StageContext) -> Finished:
    """All scenes but those whose pair of goals repeats, or is near, that of a kept one; as many of either language; and
    a reject for every seed that was called unusable.

    Who is kept depends on all drafts together: where a later run distils seeds that failed, it is decided anew.
    """
    section, seed = context.settings.scenes, context.settings.run.seed
    drafts = context.made(DRAFTS.name)
    duplicates: list[Duplicate] = []
    left: dict[Language, dict[str, str]] = {}
    for language in LANGUAGES:
        own = drafts.filter(pl.col("language") == language).select("scene_id", "goal1", "goal2")
        goals = {scene_id: join_goals(goal1, goal2, language) for scene_id, goal1, goal2 in own.iter_rows()}
        near = find_duplicates("scenes", goals, language, context.similarity(language), section.goal_dedup, seed)
        duplicates += near
        left[language] = _without({duplicate.row_id for duplicate in near}, goals)
    cut = find_surplus(left, seed) if section.one_to_one and section.sample.en == section.sample.zh else set()
    _log_left(left, cut)
    left = {language: _without(cut, goals) for language, goals in left.items()}
    named = [duplicate for duplicate in duplicates if duplicate.duplicate_of not in cut]
    unusable = [_make_reject(*row) for row in context.made(UNUSABLE.name, columns=("seed_id", "reason")).iter_rows()]
    filtered = {
        "unusable": len(unusable),
        "duplicate": len(named),
        "one_to_one": len(cut) + len(duplicates) - len(named),  # what is like a cut one is cut with it
    }
    kept = pl.Series([each for goals in left.values() for each in goals], dtype=pl.String).implode()
    rows: Rows = {
        "scenes": TABLES["scenes"].holding(drafts.filter(pl.col("scene_id").is_in(kept)).to_arrow()),
        "duplicates": named,
        "rejects": unusable,
        "diversity": [
            measure_likeness("scenes", list(goals.values()), language, context.similarity(language), seed)
            for language, goals in left.items()
        ],
    }
    return Finished(rows, {reason: count for reason, count in filtered.items() if count})


def _make_reject(seed_id: str, reason: str) -> Reject:
    sentence = f"unusable, says the distiller: {reason}"
    return Reject(
        stage="scenes", row_key=seed_id, kind="filter", reason=sentence, retryable=False, attempts=0, payload=None
    )


def _without(ids: Collection[str], goals: Mapping[str, str]) -> dict[str, str]:
    return {each: text for each, text in goals.items() if each not in ids}


def _accounting(found: Gathering, *, n_near: int, n_items: int) -> Accounting:
    """Where the rows ended that are not distilled."""
    filtered = Counter(found.filtered)
    filtered["duplicate"] += n_near
    filtered["not_sampled"] += found.n_seeds - n_near - n_items
    return Accounting(
        n_in=found.n_in - n_items,
        filtered={reason: count for reason, count in filtered.items() if count},
        failed=dict(found.failed),
    )


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()) if count) or "none"


def _log_sample(language: Language, sample: Sample, wanted: int) -> None:
    if len(sample.ids) < wanted:
        log.warning(
            "scenes.sample asks for %d %s seeds, there are %d, of which %d are near-duplicates; all others are taken",
            *(wanted, language, sample.n_there, len(sample.duplicates)),
        )
    why = ((each.method, each.duplicate_of) for each in sample.duplicates)
    n = len(sample.ids) + len(sample.duplicates)
    warn_if_most_dropped(f"seeds in {LANGUAGES[language]}", n, why, "scenes.near_duplicate")


def _log_left(left: Mapping[Language, Collection[str]], cut: Collection[str]) -> None:
    if cut:
        counts = ", ".join(f"{len(ids)} {language}" for language, ids in left.items())
        log.warning("scenes left: %s; cut to be one to one (scenes.one_to_one): %d", counts, len(cut))


STAGE = Stage(
    name="scenes",
    doc="Seed dialogues → the goals and scenes distilled from them.",
    section=ScenesSection,
    benchmark="demo",
    reads=(),
    prepare=prepare,
    prepared=("seed_dialogues", "duplicates", "rejects", "sampled_seeds"),
    load_items=briefs_of,
    work=work,
    worked=(DRAFTS.name, UNUSABLE.name),
    finish=finish,
    finished=("scenes", "duplicates", "diversity", "rejects"),
    drafts=(SAMPLED, DRAFTS, UNUSABLE),
    prompts=(DISTIL,),
    taxonomies=("goal_type",),
    encodes=True,
    roles=lambda settings: {"distiller": [settings.scenes.distiller]},
    check=check,
    files=lambda settings: [FILTERS],
    sources=lambda settings: settings.scenes.sources,
)
