"""Which scenes and characters fit together (DEMO section 3.2, conflict assessment).

Reads scenes and characters. Writes pairings (who meets in which scene) and conflicts (what the
assessor found, and which pairings go on to synthesis). Each pairing takes two requests: an assessment,
and a reflection that sees it. Where `conflicts.select` says how many are wanted, pairings are drawn on in rounds until
every goal type of either language has its share of coherent ones; plain rules refuse some before they are assessed.

An assessment that cannot be read makes the pairing a reject, counted as failed, without a row in
conflicts. A reflection that cannot be read leaves the row with `is_coherent` null, counted as filtered
under `unreadable_reflection`. Failures that may pass later always make the pairing a retryable reject.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tasks.conflicts.material import TRIPLE, find_cells, load_material
from tasks.conflicts.pairing import Dealer, Triple
from tasks.conflicts.prompts import (
    ASSESS,
    REFLECT,
    Assessment,
    ReflectInputs,
    Reflection,
    make_assess_inputs,
)
from tasks.conflicts.rules import RULES, make_refusal, pairing_rules
from tasks.conflicts.select import (
    FEWEST_AT_FIRST,
    Candidate,
    CellState,
    Selection,
    ask_for,
    count_coherent_wanted,
    count_to_keep,
    pick_best_ranked,
    select_evenly,
)
from tasks.foundation.demo.records import WORD_SETS, load_rows_by, scenes_and_characters
from tasks.foundation.errors import ModelError, NothingLeft
from tasks.foundation.ids import canonical_json, content_id
from tasks.foundation.settings.sections import ConflictsSection, PairingRule
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.stage import Asker, DrawOn, Finished, Prepared, Rows, Stage, StageContext
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.tables import Row, Table
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.personas import Character
from tasks.foundation.tables.scenes import Conflict, Pairing, Scene
from tasks.foundation.tables.types import Language, Score10

MOST_REFUSED = 20
"""Refused pairings of a goal type for every one that is asked for, after which a round leaves it."""

log = logging.getLogger(__name__)


class Assessed(Row):
    """An assessment before selection. Null from `reflection` on: the reflection could not be read."""

    pairing_id: str
    reasoning: str
    identity_ok: bool
    goal_ok: bool
    partner_ok: bool
    objection: str | None
    first_verdict: bool
    reflection: str | None
    final_reasoning: str | None
    final_identity_ok: bool | None
    final_goal_ok: bool | None
    final_partner_ok: bool | None
    final_objection: str | None
    is_coherent: bool | None
    relationship: str | None
    familiarity: Score10 | None
    talkway: str | None


class Refused(Pairing):
    """A pairing that a plain rule rules out: it is not assessed."""

    reason: PairingRule


REFUSED = Table("refused_pairings", Refused, ("pairing_id",), "one row per pairing that was drawn and refused")
ASSESSMENTS = Table("assessments", Assessed, ("pairing_id",), "one row per pairing whose assessment was readable")


@dataclass(frozen=True, slots=True)
class PairingToAssess:
    pairing: Pairing
    scene: Scene
    character1: Character
    character2: Character


def check(context: StageContext) -> None:
    """Rules that can be used."""
    pairing_rules()


def prepare(context: StageContext) -> Prepared:
    """Draws the first pairings of each language; every pairing is an item."""
    made = _draw_round(context, _no_rows())
    if not made.items and context.settings.conflicts.pairings.total:
        raise NothingLeft(
            "no pairing can be made: expected a scene and two characters of the same language, found "
            f"{context.read('scenes').height} scenes and {context.read('characters').height} characters in all; "
            f"{RULES.name} refuses {made.accounting.n_filtered} pairings. "
            '`colloquy sql "select stage, n_in, n_produced, n_filtered, n_failed from stage_runs"` shows where they '
            "went; scenes.sample and personas.characters say how many are made."
        )
    return made


def draw_on(context: StageContext, number: int) -> Prepared | None:
    """Further pairings of the goal types that lack coherent ones for `conflicts.select`; None where none does, or
    nothing more can be drawn."""
    if context.settings.conflicts.select is None:
        return None
    made = _draw_round(context, _read_drawn(context))
    return made if made.items else None


def _draw_round(context: StageContext, drawn: pl.DataFrame) -> Prepared:
    """The pairings to assess next, after those `drawn` so far; refused ones are counted as filtered."""
    pairings: list[Pairing] = []
    refused: list[Refused] = []
    for language in LANGUAGES:
        if context.settings.conflicts.pairings.of(language):
            found, left_out = _draw_of_language(context, language, drawn.filter(pl.col("language") == language))
            pairings += found
            refused += left_out
    return Prepared(
        [pairing.pairing_id for pairing in pairings],
        {"pairings": pairings, REFUSED.name: refused},
        Accounting(len(refused), 0, Counter(each.reason for each in refused)),
    )


def _draw_of_language(
    context: StageContext, language: Language, drawn: pl.DataFrame
) -> tuple[list[Pairing], list[Refused]]:
    seed, cap = context.settings.run.seed, context.settings.conflicts.pairings.of(language)
    material = load_material(context, language)
    dealer = Dealer(material.characters["character_id"].to_list(), seed, drawn.select(*TRIPLE).iter_rows())
    cells = find_cells(material, drawn, language, seed)
    asked = ask_for(cells, _count_wanted(context, language), cap)
    refuse = make_refusal(context.settings.conflicts.rules, material.scenes, material.characters, language)
    pairings: list[Pairing] = []
    refused: list[Refused] = []
    for goal_type, count in asked.items():
        if count:
            found, left_out = _take(dealer.draw(material.scenes_of[goal_type]), count, language, refuse)
            pairings += found
            refused += left_out
    if context.settings.conflicts.select is None and len(pairings) < cap:
        log.warning(
            "conflicts.pairings.%s asks for %d pairings; %d scenes and %d characters in that language give only %d",
            *(language, cap, material.scenes.height, material.characters.height, len(pairings)),
        )
    return pairings, refused


def _take(
    triples: Iterable[Triple], count: int, language: Language, refuse: Callable[[str, str, str], PairingRule | None]
) -> tuple[list[Pairing], list[Refused]]:
    """The first `count` pairings that no rule refuses, and those refused before them; fewer where most are refused."""
    pairings: list[Pairing] = []
    refused: list[Refused] = []
    for triple in triples:
        ids = dict(zip(TRIPLE, triple, strict=True))
        pairing = Pairing(pairing_id=content_id("pairing", *triple), language=language, **ids)
        if rule := refuse(*triple):
            refused.append(Refused(**pairing.model_dump(), reason=rule))
        else:
            pairings.append(pairing)
        if len(pairings) == count or len(refused) == MOST_REFUSED * (count + FEWEST_AT_FIRST):
            break
    return pairings, refused


def _count_wanted(context: StageContext, language: Language) -> int:
    """How many coherent pairings of a language are drawn for: those that `select` is a share of; without it, as many
    pairings as `pairings` says, whatever becomes of them."""
    section = context.settings.conflicts
    if section.select is None:
        return section.pairings.of(language)
    return count_coherent_wanted(section.selected_of(language), section.keep_share)


def _no_rows() -> pl.DataFrame:
    texts, flags = (
        dict.fromkeys((*TRIPLE, "language"), pl.String()),
        dict.fromkeys(("refused", "is_coherent"), pl.Boolean()),
    )
    return pl.DataFrame(schema={**texts, **flags})


def _read_drawn(context: StageContext) -> pl.DataFrame:
    """Every pairing so far, the refused ones too, and whether it was found coherent."""
    columns = ("pairing_id", *TRIPLE, "language")
    pairings = context.made("pairings", columns=columns).with_columns(refused=pl.lit(False))
    refused = context.made(REFUSED.name, columns=columns).with_columns(refused=pl.lit(True))
    verdicts = context.made(ASSESSMENTS.name, columns=("pairing_id", "is_coherent"))
    return pl.concat([pairings, refused]).join(verdicts, on="pairing_id", how="left")


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
        objection=first.objection,
        first_verdict=first.verdict,
        reflection=second.second_thoughts if second else None,
        final_reasoning=second.reasoning if second else None,
        final_identity_ok=second.identity_ok if second else None,
        final_goal_ok=second.goal_ok if second else None,
        final_partner_ok=second.partner_ok if second else None,
        final_objection=second.objection if second else None,
        is_coherent=second.verdict if second else None,
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
    pairings = context.made("pairings", columns=("pairing_id", "language", "scene_id"))
    goal_types = context.read("scenes", columns=("scene_id", "goal_type"))
    found = pairings.join(goal_types, on="scene_id").select("pairing_id", "language", "goal_type")
    cells = {pairing_id: (language, goal_type) for pairing_id, language, goal_type in found.iter_rows()}
    return {one.pairing_id: Candidate(one.pairing_id, *cells[one.pairing_id], _count_passed(one)) for one in assessed}


def _count_passed(one: Assessed) -> int:
    """Checks that hold by the last word on them."""
    final = (one.final_identity_ok, one.final_goal_ok, one.final_partner_ok)
    return sum(map(bool, final if one.is_coherent is not None else (one.identity_ok, one.goal_ok, one.partner_ok)))


def _select(context: StageContext, coherent: Sequence[Candidate]) -> tuple[str, ...]:
    section = context.settings.conflicts
    wanted = count_to_keep(len(coherent), section.keep_share, section.select)
    languages = [language for language in LANGUAGES if section.pairings.of(language)]
    cells = [(name, language) for name in taxonomy("goal_type").names for language in languages]
    most: dict[str, int] | None = (
        {language: section.selected_of(language) for language in languages} if section.select else None
    )
    selection = select_evenly(coherent, wanted, cells, context.settings.run.seed, most)
    if section.select is not None and len(selection.pairing_ids) < section.select:
        log.warning(
            "conflicts.select asks for %d pairings, but %d coherent ones at keep_share %s give %d",
            *(section.select, len(coherent), section.keep_share, len(selection.pairing_ids)),
        )
    _name_shortfalls(context, selection)
    return selection.pairing_ids


def _name_shortfalls(context: StageContext, selection: Selection) -> None:
    """Says of each cell that has less than its even share why."""
    drawn, seed = _read_drawn(context), context.settings.run.seed
    for language in [each for each in LANGUAGES if any(of == each for _, of in selection.shortfalls)]:
        material, own = load_material(context, language), drawn.filter(pl.col("language") == language)
        cells = find_cells(material, own, language, seed)
        for (goal_type, of), (found, even) in selection.shortfalls.items():
            if of == language:
                state = cells.get(goal_type, CellState(0))
                n_scenes = len(material.scenes_of.get(goal_type, ()))
                why = _explain(context, language, cells, state, n_scenes, even)
                log.warning(
                    "too few coherent pairings of %s in %s: %d selected of an even share of %d. Of %d assessed ones %d "
                    "are coherent; %s",
                    *(goal_type, language, found, even, state.drawn, state.coherent, why),
                )


def _explain(
    context: StageContext,
    language: Language,
    cells: Mapping[str, CellState],
    state: CellState,
    n_scenes: int,
    even: int,
) -> str:
    """Why no more pairings of a goal type were drawn, or kept."""
    section = context.settings.conflicts
    cap = section.pairings.of(language)
    if not n_scenes:
        return "no scene is of this type (scenes.sample)"
    if not state.left:
        return f"its {n_scenes} scenes have no further pairing (scenes.sample, personas.characters)"
    if sum(cell.drawn for cell in cells.values()) >= cap:
        return f"conflicts.pairings.{language} = {cap} is reached"
    if state.coherent >= even:
        return f"conflicts.keep_share = {section.keep_share:g} keeps no more"
    return f"the rules of {RULES.name} refuse what else was drawn"


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
    prepared=("pairings", REFUSED.name),
    draw_on=DrawOn(draw_on, until="is_coherent", most=lambda settings: settings.conflicts.pairings.total),
    load_items=load_pairings,
    work=work,
    worked=(ASSESSMENTS.name,),
    finish=finish,
    finished=("conflicts",),
    drafts=(REFUSED, ASSESSMENTS),
    prompts=(ASSESS, REFLECT),
    taxonomies=(*WORD_SETS, "goal_type", "familiarity", "talkway"),
    check=check,
    files=lambda settings: [RULES],
    roles=lambda settings: {"assessor": [settings.conflicts.assessor]},
)
