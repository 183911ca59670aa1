"""The personas stage.

Reads the persona sources of the settings. Writes persona_candidates, persona_pool, duplicates (no model is
asked for these) and characters: one request to the designer each, from a brief of drawn attributes and an
inspiring persona (DEMO section 3.2).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.foundation.accounting import Accounting
from tasks.foundation.errors import ConfigError
from tasks.foundation.settings import PersonaSource, Settings
from tasks.foundation.sources import find_files, with_distinct_keys
from tasks.foundation.stage import Asker, Prepared, Rows, Stage, StageContext
from tasks.foundation.tables.operations import Reject
from tasks.foundation.tables.personas import Character
from tasks.foundation.tables.types import Language
from tasks.personas.attributes import BRIEFS, TAXONOMIES, CharacterBrief, draw_briefs
from tasks.personas.occupations import OCCUPATIONS
from tasks.personas.pooling import Pool, make_pool
from tasks.personas.prompts import DESIGN, CharacterSketch, design_inputs
from tasks.personas.read_mapped import check_mapping, read_mapped
from tasks.personas.read_nemotron import read_nemotron
from tasks.personas.read_personamem import read_personamem
from tasks.personas.reading import Reading

READERS = {"nemotron": read_nemotron, "personamem": read_personamem, "mapped": read_mapped}
LANGUAGES: tuple[Language, ...] = ("en", "zh")

log = logging.getLogger(__name__)


def check(context: StageContext) -> None:
    """Pools named once, mappings of our columns, source files that are there."""
    section = context.settings.personas
    pools = Counter(source.pool for source in section.sources)
    if twice := [pool for pool, count in pools.items() if count > 1]:
        raise ConfigError(f"personas.sources: expected each pool once, found {', '.join(twice)} more than once")
    for source in section.sources:
        if source.reader == "mapped":
            check_mapping(source)
        if source.file is not None:
            find_files(source.file, source.split)
        context.pinned(source)


def prepare(context: StageContext) -> Prepared:
    """Reads, deduplicates and samples every source; draws the briefs of the characters."""
    section, seed = context.settings.personas, context.settings.run.seed
    rejects: list[Reject] = []
    pools: list[Pool] = []
    for source in section.sources:
        reading = READERS[source.reader](context.pinned(source))
        pool = make_pool(reading, source, section, context.encoder(), seed)
        _tell(source, reading, pool, section.pool_size)
        rejects += reading.rejects
        pools.append(pool)
    briefs = _briefs(pools, context.settings)
    rows: Rows = {
        "persona_candidates": [row for pool in pools for row in pool.candidates],
        "persona_pool": [row for pool in pools for row in pool.drawn],
        "duplicates": [row for pool in pools for row in pool.duplicates],
        "character_briefs": briefs,
        "rejects": with_distinct_keys(rejects),
    }
    accounting = sum((pool.accounting for pool in pools), Accounting())
    return Prepared([brief.character_id for brief in briefs], rows, accounting)


def briefs_of(context: StageContext, items: Sequence[str]) -> Mapping[str, CharacterBrief]:
    """The briefs of some characters by id."""
    wanted = set(items)
    briefs = (CharacterBrief.model_validate(row) for row in context.made("character_briefs").to_dicts())
    return {brief.character_id: brief for brief in briefs if brief.character_id in wanted}


async def work(context: StageContext, brief: CharacterBrief, ask: Asker) -> Rows:
    """One character, designed in one request."""
    section = context.settings.personas
    sketch: CharacterSketch = await ask(
        DESIGN,
        design_inputs(brief),
        language=brief.language,
        alias=section.designer,
        purpose="design",
        temperature=section.temperature,
        max_tokens=section.max_tokens,
    )
    return {"characters": [as_character(brief, sketch)]}


def as_character(brief: CharacterBrief, sketch: CharacterSketch) -> Character:
    """The row of a character: what was drawn, and what the designer wrote."""
    drawn: dict[str, Any] = brief.model_dump(exclude={"inspiration"})
    return Character.model_validate({**drawn, **sketch.model_dump()})


def _briefs(pools: Sequence[Pool], settings: Settings) -> list[CharacterBrief]:
    descriptions = {row.persona_id: row.description for pool in pools for row in pool.candidates}
    inspirations = {
        pool.drawn[0].pool: [(row.persona_id, descriptions[row.persona_id]) for row in pool.drawn]
        for pool in pools
        if pool.drawn
    }
    counts = settings.personas.characters
    return [
        brief
        for language in LANGUAGES
        for brief in draw_briefs(language, counts.of(language), inspirations, settings.run.seed)
    ]


def _tell(source: PersonaSource, reading: Reading, pool: Pool, wanted: int) -> None:
    log.info("pool %s: %d rows read, %d personas, %d drawn", source.pool, reading.n_in, len(pool.candidates), wanted)
    other = sum(1 for row in pool.candidates if row.occupation_group == "other")
    if other:
        log.info("pool %s: %d occupations fit no group of configs/occupations.yaml ('other')", source.pool, other)
    if len(pool.drawn) < wanted:
        log.warning(
            "pool %s has only %d personas left after deduplication where %d are wanted (personas.pool_size); "
            "all of them are in it",
            source.pool,
            len(pool.drawn),
            wanted,
        )


STAGE = Stage(
    name="personas",
    reads=(),
    prepare=prepare,
    prepared=("persona_candidates", "persona_pool", "duplicates", "character_briefs", "rejects"),
    briefs=briefs_of,
    work=work,
    worked=("characters",),
    drafts=(BRIEFS,),
    prompts=(DESIGN,),
    taxonomies=TAXONOMIES,
    encodes=True,
    roles=lambda settings: {"designer": [settings.personas.designer]},
    check=check,
    sources=lambda settings: settings.personas.sources,
    files=lambda settings: [OCCUPATIONS],
)
