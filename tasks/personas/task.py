"""The personas stage.

Reads the persona sources and the inspiring texts of the settings. Writes persona_candidates, persona_pool,
duplicates (no model is asked for these), characters: one request to the designer each, from a brief of drawn
attributes and an inspiring text (DEMO section 3.2), near-duplicates left out; and how diverse they are.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tasks.foundation.demo.records import load_rows_by
from tasks.foundation.errors import ConfigError, SourceError
from tasks.foundation.settings.sections import PersonasSection
from tasks.foundation.sources import find_files
from tasks.foundation.stage import Asker, Finished, Prepared, Rows, Stage, StageContext
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.tables import TABLES, Table
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.personas import Character, Diversity, Duplicate
from tasks.foundation.texts.dedupe import find_duplicates
from tasks.foundation.texts.similarity import measure_likeness
from tasks.personas.briefs import write_briefs
from tasks.personas.candidates import Gathered, PieceCounter, Writers, gather, group_by_pool
from tasks.personas.characters import BRIEFS, TAXONOMIES, CharacterBrief, measure_coverage
from tasks.personas.inspirations import corpora_of, read_inspirations
from tasks.personas.people import NAMES, read_names
from tasks.personas.pool import Pool, make_pool
from tasks.personas.prompts import DESIGN, CharacterSketch, design_inputs
from tasks.personas.readers.mapped import check_mapping
from tasks.personas.readers.occupations import OCCUPATIONS, describe_coverage

DRAFTS = Table("character_drafts", Character, ("character_id",), "one row per designed character, before duplicates go")

log = logging.getLogger(__name__)


def check(context: StageContext) -> None:
    """Names that can be used, pools of sources of one kind, mappings of our columns, files that are there, and a text
    for every language of characters."""
    section = context.settings.personas
    read_names()
    for pool, own in group_by_pool(section.sources).items():
        if len({(source.reader, source.licence) for source in own}) > 1:
            found = ", ".join(f"{source.reader} ({source.licence})" for source in own)
            raise ConfigError(
                f"personas.sources: expected one reader and one licence for all sources of pool {pool}, found {found}. "
                "Name another pool, or write the licence that covers both."
            )
    for source in section.sources:
        if source.reader == "mapped":
            check_mapping(source)
        if source.file is not None:
            find_files(source.file, source.split)
        context.pinned(source)
    for texts in section.inspirations:
        next(read_inspirations(context.pinned(texts)))
    for language in LANGUAGES:
        inspired = bool(section.sources) or language in {texts.language for texts in section.inspirations}
        if section.characters.of(language) and not inspired:
            raise ConfigError(
                f"personas.characters asks for {section.characters.of(language)} characters in {language}, but there "
                "is nothing that could inspire one: expected a pool in personas.sources, or a text file of this "
                "language in personas.inspirations"
            )


def prepare(context: StageContext) -> Prepared:
    """Reads, deduplicates and samples every source; draws the briefs of the characters."""
    section, seed = context.settings.personas, context.settings.run.seed
    sources = [context.pinned(source) for source in section.sources]
    with context.writer("duplicates") as duplicates:
        with context.writer("persona_candidates") as candidates, context.writer("rejects") as rejects:
            writers = Writers(candidates, duplicates, rejects)
            gathered = gather(sources, writers, PieceCounter(context.encoder()), section.languages)
        for here in gathered:
            here.reading.require_usable(f"pool {here.source.pool}", here.stop - here.start, section.max_failure_rate)
            _log_read(here)
        pools = [make_pool(here, candidates.stored, duplicates, section, context.similarity, seed) for here in gathered]
    _require_size(pools, section)
    with context.writer(BRIEFS.name) as briefs:
        corpora = {
            language: corpora_of(
                [context.pinned(each) for each in section.inspirations if each.language == language],
                *(section.characters.of(language), seed),
            )
            for language in LANGUAGES
        }
        most = context.settings.text_limits.inspiration
        items = write_briefs(section.characters, pools, corpora, candidates.stored, briefs, seed=seed, most=most)
    return Prepared(
        items,
        {
            "persona_candidates": candidates.stored,
            "persona_pool": [row for pool in pools for row in pool.drawn],
            "duplicates": duplicates.stored,
            BRIEFS.name: briefs.stored,
            "rejects": rejects.stored,
        },
        sum((pool.accounting for pool in pools), Accounting()),
    )


def briefs_of(context: StageContext, items: Sequence[str]) -> Mapping[str, CharacterBrief]:
    """The briefs of some characters by id."""
    return load_rows_by(context.made, "character_briefs", CharacterBrief, "character_id", items)


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
    return {DRAFTS.name: [as_character(brief, sketch)]}


def as_character(brief: CharacterBrief, sketch: CharacterSketch) -> Character:
    """The row of a character: what was drawn, and what the designer wrote."""
    drawn: dict[str, Any] = brief.model_dump(exclude={"inspiration", "origin"})
    return Character.model_validate({**drawn, **sketch.model_dump()})


def finish(context: StageContext) -> Finished:
    """All characters but those whose description repeats, or is near, that of a kept one.

    Who is kept depends on all drafts together: where a later run designs characters that failed, it is decided anew.
    """
    section, seed = context.settings.personas, context.settings.run.seed
    drafts = context.made(DRAFTS.name)
    kept: list[str] = []
    duplicates: list[Duplicate] = []
    diversity: list[Diversity] = []
    for language in LANGUAGES:
        own, similarity = drafts.filter(pl.col("language") == language), context.similarity(language)
        texts = {row["character_id"]: written_of(row) for row in own.iter_rows(named=True)}
        found = find_duplicates("characters", texts, language, similarity, section.character_dedup, seed)
        duplicates += found
        for duplicate in found:
            del texts[duplicate.row_id]
        kept += texts
        diversity.append(measure_likeness("characters", list(texts.values()), language, similarity, seed))
        diversity.append(
            measure_coverage(own.filter(pl.col("character_id").is_in(texts)).iter_rows(named=True), language)
        )
    held = drafts.filter(pl.col("character_id").is_in(pl.Series(kept, dtype=pl.String).implode()))
    rows: Rows = {
        "characters": TABLES["characters"].holding(held.to_arrow()),
        "duplicates": duplicates,
        "diversity": diversity,
    }
    return Finished(rows, {"duplicate": len(duplicates)} if duplicates else {})


def written_of(character: Mapping[str, Any]) -> str:
    """What the designer wrote of a character: another name makes nobody different."""
    return ". ".join(str(character[name]).rstrip(".。 ") for name in CharacterSketch.model_fields)


def _require_size(pools: Sequence[Pool], section: PersonasSection) -> None:
    """SourceError for a pool that has fewer personas than are wanted; with `if_short: warn` it says so and goes on.

    It stops by default: a smaller pool is another benchmark, and nothing has been paid for yet.
    """
    for pool in pools:
        log.info("pool %s: %d drawn", pool.name, len(pool.drawn))
        if len(pool.drawn) < section.pool_size:
            said = (
                f"pool {pool.name} has only {len(pool.drawn):,} personas after deduplication where personas.pool_size "
                f"asks for {section.pool_size:,}"
            )
            if section.if_short == "fail":
                raise SourceError(
                    f"{said}. Add a source of the same pool name (another split, another file), ask for fewer, or take "
                    "all there are with personas.if_short=warn."
                )
            log.warning("%s; all of them are in it", said)


def _log_read(here: Gathered) -> None:
    reading, source = here.reading, here.source
    counts = (reading.n_in, here.stop - here.start, reading.n_repeats, reading.filtered.total(), reading.failed.total())
    log.info(
        "pool %s (%s): %d rows read, %d candidates, %d repeats, %d filtered, %d failed",
        *(source.pool, source.licence, *counts),
    )
    log.info("pool %s: %s", source.pool, describe_coverage(here.groups, here.others))


STAGE = Stage(
    name="personas",
    doc="Source personas → a deduplicated, stratified pool and the characters designed from it.",
    section=PersonasSection,
    reads=(),
    prepare=prepare,
    prepared=("persona_candidates", "persona_pool", "duplicates", "character_briefs", "rejects"),
    load_items=briefs_of,
    work=work,
    worked=(DRAFTS.name,),
    finish=finish,
    finished=("characters", "duplicates", "diversity"),
    drafts=(BRIEFS, DRAFTS),
    prompts=(DESIGN,),
    taxonomies=TAXONOMIES,
    text_limits=("inspiration",),
    encodes=True,
    roles=lambda settings: {"designer": [settings.personas.designer]},
    check=check,
    sources=lambda settings: [
        *settings.personas.sources,
        *(texts for texts in settings.personas.inspirations if texts.column is not None),
    ],
    files=lambda settings: [
        OCCUPATIONS,
        NAMES,
        *(texts.file for texts in settings.personas.inspirations if texts.column is None),
    ],
)
