"""Which scenes and characters fit together (DEMO section 3.2, conflict assessment).

Reads scenes and characters. Writes pairings (who meets in which scene) and conflicts (what the
assessor found, and which pairings go on to synthesis). Each pairing takes two requests: an assessment,
and a reflection that sees it.

An assessment that cannot be read makes the pairing a reject, counted as failed, without a row in
conflicts. A reflection that cannot be read leaves the row with `is_coherent` null, counted as filtered
under `unreadable_reflection`. Failures that may pass later always make the pairing a retryable reject.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tasks.conflicts.pairing import draw_pairings
from tasks.conflicts.prompts import (
    ASSESS,
    REFLECT,
    Assessment,
    ReflectInputs,
    Reflection,
    make_assess_inputs,
)
from tasks.conflicts.select import Candidate, Selection, count_to_keep, pick_best_ranked, select_evenly
from tasks.foundation.demo.records import load_rows_by, scenes_and_characters
from tasks.foundation.errors import ModelError, NothingLeft
from tasks.foundation.ids import canonical_json, content_id
from tasks.foundation.settings.sections import ConflictsSection
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.stage import Asker, Finished, Prepared, Rows, Stage, StageContext
from tasks.foundation.tables import Row, Table
from tasks.foundation.tables.personas import Character
from tasks.foundation.tables.scenes import Conflict, Pairing, Scene
from tasks.foundation.tables.types import Language, Score10

log = logging.getLogger(__name__)


class Assessed(Row):
    """An assessment before selection. Null from `reflection` on: the reflection could not be read."""

    pairing_id: str
    reasoning: str
    identity_ok: bool
    goal_ok: bool
    partner_ok: bool
    first_verdict: bool
    reflection: str | None
    is_coherent: bool | None
    relationship: str | None
    familiarity: Score10 | None
    talkway: str | None


ASSESSMENTS = Table("assessments", Assessed, ("pairing_id",), "one row per pairing whose assessment was readable")


@dataclass(frozen=True, slots=True)
class PairingToAssess:
    pairing: Pairing
    scene: Scene
    character1: Character
    character2: Character


def prepare(context: StageContext) -> Prepared:
    """Draws the pairings of each language; every pairing is an item."""
    pairings = [pairing for language in ("en", "zh") for pairing in _draw_pairings(context, language)]
    if not pairings and context.settings.conflicts.pairings.total:
        raise NothingLeft(
            "no pairing can be made: expected a scene and two characters of the same language, found "
            f"{context.read('scenes').height} scenes and {context.read('characters').height} characters in all. "
            '`colloquy sql "select stage, n_in, n_produced, n_filtered, n_failed from stage_runs"` shows where they '
            "went; scenes.sample and personas.characters say how many are made."
        )
    return Prepared(items=[pairing.pairing_id for pairing in pairings], rows={"pairings": pairings})


def _draw_pairings(context: StageContext, language: Language) -> list[Pairing]:
    wanted = context.settings.conflicts.pairings.of(language)
    scenes = _read_ids(context, "scenes", "scene_id", language)
    characters = _read_ids(context, "characters", "character_id", language)
    triples = draw_pairings(scenes, characters, wanted, context.settings.run.seed)
    if len(triples) < wanted:
        log.warning(
            "conflicts.pairings.%s asks for %d pairings; %d scenes and %d characters in that language give only %d",
            *(language, wanted, len(scenes), len(characters), len(triples)),
        )
    return [
        Pairing(
            pairing_id=content_id("pairing", scene, one, two),
            scene_id=scene,
            character1_id=one,
            character2_id=two,
            language=language,
        )
        for scene, one, two in triples
    ]


def _read_ids(context: StageContext, table: str, column: str, language: Language) -> list[str]:
    return context.read(table, pl.col("language") == language, (column,))[column].to_list()


def load_pairings(context: StageContext, keys: Sequence[str]) -> Mapping[str, PairingToAssess]:
    """Scene and characters of each pairing."""
    pairings = load_rows_by(context.made, "pairings", Pairing, "pairing_id", keys)
    scenes, characters = scenes_and_characters(context.read, pairings.values())
    return {
        key: PairingToAssess(
            pairings[key],
            scenes[pairings[key].scene_id],
            characters[pairings[key].character1_id],
            characters[pairings[key].character2_id],
        )
        for key in keys
    }


async def work(context: StageContext, case: PairingToAssess, ask: Asker) -> Rows:
    """One assessment, then one reflection on it."""
    section = context.settings.conflicts
    inputs = make_assess_inputs(case.scene, case.character1, case.character2)
    manner: dict[str, Any] = {
        "language": case.pairing.language,
        "alias": section.assessor,
        "temperature": section.temperature,
        "max_tokens": section.max_tokens,
    }
    first: Assessment = await ask(ASSESS, inputs, purpose="assess", **manner)
    again = ReflectInputs(**inputs.model_dump(), first_assessment=canonical_json(first.model_dump()))
    second: Reflection | None
    try:
        second = await ask(REFLECT, again, purpose="reflect", **manner)
    except ModelError as error:
        if error.may_pass_later:
            raise
        second = None
    return {ASSESSMENTS.name: [_make_assessment(case.pairing.pairing_id, first, second)]}


def _make_assessment(pairing_id: str, first: Assessment, second: Reflection | None) -> Assessed:
    return Assessed(
        pairing_id=pairing_id,
        reasoning=first.reasoning,
        identity_ok=first.identity_ok,
        goal_ok=first.goal_ok,
        partner_ok=first.partner_ok,
        first_verdict=first.coherent,
        reflection=second.second_thoughts if second else None,
        is_coherent=second.is_coherent if second else None,
        relationship=second.relationship if second else None,
        familiarity=second.familiarity if second else None,
        talkway=getattr(second, "talkway", None),
    )


def finish(context: StageContext) -> Finished:
    """Selects among the assessed pairings; the others end as filtered."""
    assessed = [Assessed.model_validate(row) for row in context.made(ASSESSMENTS.name).iter_rows(named=True)]
    candidates = _make_candidates(context, assessed)
    coherent = [candidates[one.pairing_id] for one in assessed if one.is_coherent]
    if coherent or not context.made("pairings").height:
        chosen = _select(context, coherent)
    else:
        chosen = _keep_best(context, [candidates[one.pairing_id] for one in assessed if one.is_coherent is not None])
    ranks = {pairing_id: rank for rank, pairing_id in enumerate(chosen)}
    rows = [_make_conflict(one, ranks.get(one.pairing_id)) for one in assessed]
    return Finished({"conflicts": rows}, Counter(_explain_filter(row) for row in rows if not row.selected))


def _make_candidates(context: StageContext, assessed: Sequence[Assessed]) -> dict[str, Candidate]:
    pairings = load_rows_by(context.made, "pairings", Pairing, "pairing_id", [one.pairing_id for one in assessed])
    goal_types = dict(context.read("scenes", columns=("scene_id", "goal_type")).iter_rows())
    return {
        one.pairing_id: Candidate(
            one.pairing_id,
            pairings[one.pairing_id].language,
            goal_types[pairings[one.pairing_id].scene_id],
            one.identity_ok + one.goal_ok + one.partner_ok,
        )
        for one in assessed
    }


def _select(context: StageContext, coherent: Sequence[Candidate]) -> tuple[str, ...]:
    section = context.settings.conflicts
    wanted = count_to_keep(len(coherent), section.keep_share, section.select)
    if section.select is not None and wanted < section.select:
        log.warning(
            "conflicts.select asks for %d pairings, but %d coherent ones at keep_share %s give %d",
            *(section.select, len(coherent), section.keep_share, wanted),
        )
    languages = [language for language in ("en", "zh") if section.pairings.of(language)]
    cells = [(name, language) for name in taxonomy("goal_type").names for language in languages]
    selection = select_evenly(coherent, wanted, cells, context.settings.run.seed)
    _name_shortfalls(selection)
    return selection.pairing_ids


def _name_shortfalls(selection: Selection) -> None:
    for (goal_type, language), (found, even) in selection.shortfalls.items():
        log.warning(
            "too few coherent pairings of %s in %s: %d of an even share of %d", goal_type, language, found, even
        )


def _keep_best(context: StageContext, candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """What `if_none` says where nothing is coherent: the best-ranked ones, or an error."""
    section = context.settings.conflicts
    if not section.keep_if_none or not candidates:
        raise NothingLeft(
            f"the assessor {section.assessor!r} found none of {len(candidates)} readable pairings coherent, so there "
            "is nothing to write dialogues for. Name a stronger model in conflicts.assessor, draw more with "
            "conflicts.pairings, or, for trying things out only, set conflicts.if_none to 'keep N'."
        )
    chosen = pick_best_ranked(candidates, section.keep_if_none, context.settings.run.seed)
    log.warning(
        "no pairing is coherent; as conflicts.if_none says, the %d best-ranked go on (selected with is_coherent false)",
        len(chosen),
    )
    return chosen


def _make_conflict(one: Assessed, rank: int | None) -> Conflict:
    """The row; what only coherent or selected pairings need is null in the others."""
    plain = one.model_dump()
    if not one.is_coherent and rank is None:
        plain.update(relationship=None, familiarity=None, talkway=None)
    return Conflict(**plain, selected=rank is not None, selection_rank=rank)


def _explain_filter(row: Conflict) -> str:
    if row.is_coherent is None:
        return "unreadable_reflection"
    return "not_selected" if row.is_coherent else "incoherent"


STAGE = Stage(
    name="conflicts",
    doc="Scenes with two characters each → which of them could have that talk, and which go on.",
    section=ConflictsSection,
    benchmark="demo",
    reads=("scenes", "characters"),
    prepare=prepare,
    prepared=("pairings",),
    load_items=load_pairings,
    work=work,
    worked=(ASSESSMENTS.name,),
    finish=finish,
    finished=("conflicts",),
    drafts=(ASSESSMENTS,),
    prompts=(ASSESS, REFLECT),
    taxonomies=("goal_type", "familiarity", "talkway", "attributes", "age_band"),
    roles=lambda settings: {"assessor": [settings.conflicts.assessor]},
)
