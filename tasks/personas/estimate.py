"""What the personas stage asks: one request to the designer for every character."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.foundation.planning.estimate import Ask, Estimate, Kind, Portion, View
from tasks.foundation.planning.extremes import SHORT_PHRASE, filler, largest, smallest
from tasks.foundation.planning.meter import PromptSize
from tasks.foundation.planning.span import Span
from tasks.foundation.settings.taxonomies import Label, taxonomy
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.personas import BigFive, PersonaCandidate, PersonaPoolRow
from tasks.personas.characters import INSPIRATION_CHARACTERS, CharacterBrief
from tasks.personas.prompts import DESIGN, CharacterSketch, design_inputs
from tasks.personas.task import as_character

DESCRIPTION_CHARACTERS = Span(200, 4000)
"""Of a source persona as one paragraph; those of the bundled sample have 365 to 826."""


def estimate(view: View) -> Estimate:
    section = view.settings.personas
    asks, characters = [], []
    for language in LANGUAGES:
        count = section.characters.of(language)
        if not count:
            continue
        meter, briefs = view.meter(section.designer), (_brief(language, most=False), _brief(language, most=True))
        prompts = [meter.messages(DESIGN.render(language, design_inputs(brief))) for brief in briefs]
        reply = meter.reply(CharacterSketch, language)
        requests = Span.exactly(count)
        asks.append(Ask(section.designer, "design", requests, PromptSize.around(prompts), reply, section.max_tokens))
        short = as_character(briefs[0], smallest(CharacterSketch, language))
        long = as_character(briefs[1], largest(CharacterSketch, language))
        characters.append(Portion(requests, (Kind(language, short, long),)))
    return Estimate(
        asks,
        {"characters": characters, "persona_pool": _pools(view), "persona_candidates": [_candidates()]},
        [
            f"every source holds at least personas.pool_size = {section.pool_size} different personas, described in "
            f"{DESCRIPTION_CHARACTERS.low:,} to {DESCRIPTION_CHARACTERS.high:,} characters; no two characters are "
            "designed alike"
        ],
    )


def _brief(language: str, *, most: bool) -> CharacterBrief:
    """The brief that takes the least or the most words."""
    pick = max if most else min

    def drawn(group: str, count: int) -> list[str]:
        labels = sorted(taxonomy("attributes").group(group), key=lambda label: len(label.shown(language)), reverse=most)
        return [label.name for label in labels[:count]]

    def length(label: Label) -> int:
        return len(label.name)

    return CharacterBrief.model_validate(
        {
            "character_id": "character",
            "language": language,
            "persona_id": "persona",
            "inspired_by": "pool",
            "inspiration": filler(INSPIRATION_CHARACTERS if most else SHORT_PHRASE["en"], "en"),
            "gender": "F" if most else "M",
            "age": 95 if most else 6,
            "age_band": pick(taxonomy("age_band").labels, key=length).name,
            "big_five": dict.fromkeys(BigFive.model_fields, "High" if most else "Low"),
            "moral_values": drawn("moral_value", 2 if most else 1),
            "personal_values": drawn("personal_value", 2),
            "decision_style": drawn("decision_style", 1)[0],
            "social_skill": drawn("social_skill", 1)[0],
        }
    )


def _pools(view: View) -> Sequence[Portion]:
    section = view.settings.personas
    sizes = [min(section.pool_size, source.limit or section.pool_size) for source in section.sources]
    row = PersonaPoolRow.model_construct()
    return [Portion(Span.exactly(size), (Kind("en", row, row),)) for size in sizes]


def _candidates() -> Portion:
    short, long = (
        PersonaCandidate.model_construct(description=filler(int(characters), "en"))
        for characters in (DESCRIPTION_CHARACTERS.low, DESCRIPTION_CHARACTERS.high)
    )
    return Portion(Span(1, 1), (Kind("en", short, long),))
