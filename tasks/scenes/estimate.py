"""What the scenes stage asks: one request to the distiller for every sampled seed dialogue."""

from __future__ import annotations

from typing import Any

from tasks.foundation.planning.estimate import Ask, Estimate, Kind, Portion, View
from tasks.foundation.planning.extremes import filler, largest, smallest
from tasks.foundation.planning.meter import PromptSize
from tasks.foundation.planning.span import Span
from tasks.foundation.settings.sections import ScenesSection
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.scenes import Scene, SeedDialogue, SeedTurn
from tasks.scenes.prompts import DISTIL, Distilled, distil_inputs, distilled


def estimate(view: View) -> Estimate:
    section = view.settings.scenes
    asks, scenes = [], []
    for language in LANGUAGES:
        count = section.sample.of(language)
        if not count:
            continue
        meter, seeds = view.meter(section.distiller), (_seed(section, language, most=most) for most in (False, True))
        prompts = [meter.messages(DISTIL.render(language, distil_inputs(seed))) for seed in seeds]
        requests, reply = Span.exactly(count), meter.reply(distilled(), language)
        asks.append(Ask(section.distiller, "distil", requests, PromptSize.around(prompts), reply, section.max_tokens))
        short, long = (
            _scene(reply, language) for reply in (smallest(distilled(), language), largest(distilled(), language))
        )
        scenes.append(Portion(requests, (Kind(language, short, long),)))
    said = (
        f"the corpora hold at least scenes.sample = {section.sample.en:,} English and {section.sample.zh:,} Chinese "
        f"dialogues of {section.min_turns} to {section.max_turns} turns and at most {section.max_characters:,} "
        "characters, no two of which are distilled to the same goals or nearly so"
    )
    return Estimate(asks, {"scenes": scenes}, [said] if asks else [])


def _seed(section: ScenesSection, language: str, *, most: bool) -> SeedDialogue:
    """A dialogue at the bounds of the settings."""
    turns = section.max_turns if most else section.min_turns
    text = filler(-(-section.max_characters // turns) if most else 2, language)
    return SeedDialogue.model_construct(
        language=language, turns=[SeedTurn(speaker=str(turn % 2 + 1), text=text) for turn in range(turns)]
    )


def _scene(reply: Distilled, language: str) -> Scene:
    plain: dict[str, Any] = reply.model_dump()
    return Scene.model_validate({"scene_id": "scene", "seed_id": "seed", "language": language, **plain})
