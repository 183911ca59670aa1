"""What the conflicts stage asks: an assessment of every pairing and a reflection on it; and how many may go on."""

from __future__ import annotations

import math

from tasks.conflicts.prompts import (
    ASSESS,
    REFLECT,
    Assessment,
    ReflectInputs,
    Reflection,
    assess_inputs,
    reflection_reply,
)
from tasks.conflicts.select import how_many
from tasks.foundation.ids import canonical_json
from tasks.foundation.planning.estimate import Ask, Estimate, Kind, Portion, View
from tasks.foundation.planning.extremes import largest, smallest
from tasks.foundation.planning.meter import PromptSize
from tasks.foundation.planning.span import Span
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.scenes import Conflict

LEAST_COHERENT = 0.25
"""Of the pairings; a plausible least, unless `conflicts.if_none` expects that none is."""


def estimate(view: View) -> Estimate:
    section = view.settings.conflicts
    alias, budget = section.assessor, section.max_tokens
    meter = view.meter(alias)
    asks, kinds, pairings = [], [], Span(0, 0)
    for language in LANGUAGES:
        scenes, people = view.kind("scenes", language), view.kind("characters", language)
        count = _pairings(view, language)
        if scenes is None or people is None or not count.high:
            continue
        first, second = [], []
        for scene, person, assessed in zip(scenes.both, people.both, _assessments(language), strict=True):
            inputs = assess_inputs(scene, person, person)
            again = ReflectInputs(**inputs.model_dump(), first_assessment=canonical_json(assessed.model_dump()))
            first.append(meter.messages(ASSESS.render(language, inputs)))
            second.append(meter.messages(REFLECT.render(language, again)))
        reflection = meter.reply(reflection_reply(), language)
        asks += [
            Ask(alias, "assess", count, PromptSize.around(first), meter.reply(Assessment, language), budget),
            Ask(alias, "reflect", count, PromptSize.around(second), reflection, budget),
        ]
        pairings += count
        kinds.append(_selected(language))
    rows = _go_on(view, pairings)
    said = (
        f"of {_shown(pairings)} pairings, {_shown(rows)} go on to a dialogue: at least "
        + (f"{LEAST_COHERENT:.0%} are coherent" if not section.keep_if_none else "those that conflicts.if_none keeps")
        + f", keep_share {section.keep_share:g}, select {section.select or 'all'}"
    )
    return Estimate(asks, {"conflicts": [Portion(rows, tuple(kinds))] if kinds else []}, [said] if asks else [])


def _pairings(view: View, language: str) -> Span:
    """How many pairings of a language are drawn: as many as wanted, unless there are fewer triples."""
    scenes, people = view.rows("scenes", language), view.rows("characters", language)
    triples = Span(
        scenes.low * people.low * max(people.low - 1, 0), scenes.high * people.high * max(people.high - 1, 0)
    )
    return triples.at_most(view.settings.conflicts.pairings.of(language))


def _go_on(view: View, pairings: Span) -> Span:
    """Selected pairings: of a quarter to all that are coherent, or what `if_none` keeps where that is less."""
    section = view.settings.conflicts
    low, high = (
        how_many(math.ceil(coherent), section.keep_share, section.select)
        for coherent in (pairings.low * LEAST_COHERENT, pairings.high)
    )
    kept = section.keep_if_none
    return Span(min(low, kept), max(high, min(kept, int(pairings.high)))) if kept else Span(low, high)


def _assessments(language: str) -> tuple[Assessment, Assessment]:
    return smallest(Assessment, language), largest(Assessment, language)


def _selected(language: str) -> Kind:
    """Rows of selected pairings, as far as writing a dialogue needs them."""
    rows = []
    for make in (smallest, largest):
        assessed, second = make(Assessment, language), make(reflection_reply(), language)
        assert isinstance(second, Reflection)
        plain = assessed.model_dump(exclude={"coherent"}) | second.model_dump(exclude={"second_thoughts"})
        rows.append(
            Conflict.model_validate(
                {
                    "pairing_id": "pairing",
                    "first_verdict": True,
                    "reflection": second.second_thoughts,
                    "selected": True,
                    "selection_rank": 0,
                    **plain,
                }
            )
        )
    return Kind.made_of(language, rows)


def _shown(span: Span) -> str:
    return f"{span.low:,.0f}" if span.low == span.high else f"{span.low:,.0f} to {span.high:,.0f}"
