"""The scenes stage.

Reads the dialogue corpora of the settings. Writes seed_dialogues (every usable one), duplicates and scenes:
goals and scene of a sample of them, one request to the distiller each (DEMO section 3.2).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.foundation.accounting import Accounting
from tasks.foundation.ids import content_id
from tasks.foundation.sources import find_files
from tasks.foundation.stage import Asker, Finished, Prepared, Rows, Stage, StageContext
from tasks.foundation.tables import TABLES, Table
from tasks.foundation.tables.personas import Duplicate
from tasks.foundation.tables.scenes import Scene, SeedDialogue
from tasks.foundation.tables.types import Language
from tasks.scenes.gather import Gathering, Writers
from tasks.scenes.nameless import without_names
from tasks.scenes.prompts import DISTIL, Distilled, distil_inputs, distilled
from tasks.scenes.repeats import first_of_each, goals_key
from tasks.scenes.sampling import Sample, draw
from tasks.scenes.wanted import FILTERS, filter_rules

LANGUAGES: tuple[Language, ...] = ("en", "zh")
SAMPLED = Table("sampled_seeds", SeedDialogue, ("seed_id",), "one row per seed dialogue to distil")
DRAFTS = Table("scene_drafts", Scene, ("scene_id",), "one row per distilled seed, before repeats are dropped")

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
        log.info("%d rows read, %d seeds; left out: %s", found.n_in, found.n_seeds, _told(found.filtered))
        samples = [
            draw(seeds.stored, language, section.sample.of(language), section.near_duplicate, seed)
            for language in LANGUAGES
        ]
        near = [duplicate for sample in samples for duplicate in sample.duplicates]
        duplicates.write(TABLES["duplicates"].arrow(near))
    with context.writer(SAMPLED.name) as sampled:
        for language, sample in zip(LANGUAGES, samples, strict=True):
            _tell(language, sample, section.sample.of(language))
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
    seeds = context.made(SAMPLED.name)
    wanted = seeds.filter(seeds["seed_id"].is_in(list(items)))
    return {row["seed_id"]: SeedDialogue.model_validate(row) for row in wanted.to_dicts()}


async def work(context: StageContext, seed: SeedDialogue, ask: Asker) -> Rows:
    """Goals and scene of one seed, distilled in one request."""
    section = context.settings.scenes
    reply: Distilled = await ask(
        DISTIL,
        distil_inputs(seed),
        language=seed.language,
        alias=section.distiller,
        purpose="distil",
        temperature=section.temperature,
        max_tokens=section.max_tokens,
        reply=distilled(),
    )
    return {"scene_drafts": [as_scene(seed, reply)]}


def as_scene(seed: SeedDialogue, reply: Distilled) -> Scene:
    """The row of a scene; names of the seed's speakers that the distiller left in its goals are taken out."""
    first, second = dict.fromkeys(turn.speaker for turn in seed.turns)
    plain: dict[str, Any] = reply.model_dump()
    plain["goal1"] = without_names(reply.goal1, own=first, other=second, language=seed.language)
    plain["goal2"] = without_names(reply.goal2, own=second, other=first, language=seed.language)
    scene_id = content_id("scene", seed.seed_id)
    return Scene.model_validate({"scene_id": scene_id, "seed_id": seed.seed_id, "language": seed.language, **plain})


def finish(context: StageContext) -> Finished:
    """All scenes but those whose pair of goals repeats an earlier one's (in order of their ids)."""
    scenes = [Scene.model_validate(row) for row in context.made("scene_drafts").to_dicts()]
    repeats = first_of_each((scene.scene_id, goals_key(scene)) for scene in scenes)
    duplicates = [
        Duplicate(table_name="scenes", row_id=repeat, duplicate_of=original, cosine=None, method="exact")
        for repeat, original in repeats.items()
    ]
    kept = [scene for scene in scenes if scene.scene_id not in repeats]
    return Finished({"scenes": kept, "duplicates": duplicates}, {"duplicate": len(repeats)} if repeats else {})


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


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()) if count) or "none"


def _tell(language: Language, sample: Sample, wanted: int) -> None:
    if len(sample.ids) < wanted:
        log.warning(
            "scenes.sample asks for %d %s seeds, there are %d, of which %d are near-duplicates; all others are taken",
            wanted,
            language,
            sample.n_there,
            len(sample.duplicates),
        )


STAGE = Stage(
    name="scenes",
    reads=(),
    prepare=prepare,
    prepared=("seed_dialogues", "duplicates", "rejects", "sampled_seeds"),
    briefs=briefs_of,
    work=work,
    worked=("scene_drafts",),
    finish=finish,
    finished=("scenes", "duplicates"),
    drafts=(SAMPLED, DRAFTS),
    prompts=(DISTIL,),
    taxonomies=("goal_type",),
    roles=lambda settings: {"distiller": [settings.scenes.distiller]},
    check=check,
    files=lambda settings: [FILTERS],
    sources=lambda settings: settings.scenes.sources,
)
