"""The scenes stage.

Reads the dialogue corpora of the settings. Writes seed_dialogues (every usable one), duplicates and scenes:
goals and scene of a sample of them, one request to the distiller each (DEMO section 3.2).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.foundation.accounting import Accounting
from tasks.foundation.ids import content_id, seeded_order
from tasks.foundation.settings import PerLanguage
from tasks.foundation.sources import find_files, with_distinct_keys
from tasks.foundation.stage import Asker, Finished, Prepared, Rows, Stage, StageContext
from tasks.foundation.tables import Table
from tasks.foundation.tables.personas import Duplicate
from tasks.foundation.tables.scenes import Scene, SeedDialogue
from tasks.foundation.tables.types import Language
from tasks.scenes.gather import Seeds
from tasks.scenes.nameless import without_names
from tasks.scenes.prompts import DISTIL, Distilled, distil_inputs, distilled
from tasks.scenes.repeats import first_of_each, goals_key

LANGUAGES: tuple[Language, ...] = ("en", "zh")
DRAFTS = Table("scene_drafts", Scene, ("scene_id",), "one row per distilled seed, before repeats are dropped")

log = logging.getLogger(__name__)


def check(context: StageContext) -> None:
    """Source files that are there."""
    for source in context.settings.scenes.sources:
        if source.file is not None:
            find_files(source.file, source.split)
        context.pinned(source)


def prepare(context: StageContext) -> Prepared:
    """Reads and filters every source; draws the seeds that are distilled before anything is paid for."""
    section = context.settings.scenes
    found = Seeds()
    for source in section.sources:
        found.read(context.pinned(source), section)
    items = sample(found.seeds, section.sample, context.settings.run.seed)
    filtered = {**found.filtered, "not_sampled": len(found.seeds) - len(items)}
    accounting = Accounting(
        n_in=found.n_in - len(items),
        filtered={reason: count for reason, count in filtered.items() if count},
        failed=dict(found.failed),
    )
    rows: Rows = {
        "seed_dialogues": found.seeds,
        "duplicates": found.duplicates,
        "rejects": with_distinct_keys(found.rejects),
    }
    return Prepared(items, rows, accounting)


def sample(seeds: Sequence[SeedDialogue], counts: PerLanguage, seed: int) -> list[str]:
    """Ids of the seeds to distil: of each language the first of a seeded order that depends on ids only."""
    drawn = []
    for language in LANGUAGES:
        ids = [each.seed_id for each in seeds if each.language == language]
        wanted = counts.of(language)
        if len(ids) < wanted:
            log.warning("scenes.sample asks for %d %s seeds, there are %d; all are taken", wanted, language, len(ids))
        drawn += [ids[position] for position in seeded_order(ids, seed, "scenes.sample")[:wanted]]
    return drawn


def briefs_of(context: StageContext, items: Sequence[str]) -> Mapping[str, SeedDialogue]:
    """The seed dialogues of some items by id."""
    seeds = context.made("seed_dialogues")
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


STAGE = Stage(
    name="scenes",
    reads=(),
    prepare=prepare,
    prepared=("seed_dialogues", "duplicates", "rejects"),
    briefs=briefs_of,
    work=work,
    worked=("scene_drafts",),
    finish=finish,
    finished=("scenes", "duplicates"),
    drafts=(DRAFTS,),
    prompts=(DISTIL,),
    taxonomies=("goal_type",),
    roles=lambda settings: {"distiller": [settings.scenes.distiller]},
    check=check,
    sources=lambda settings: settings.scenes.sources,
)
