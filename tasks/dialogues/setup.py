"""What a writer is given: a selected pairing, and how long its dialogue is to be."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tasks.dialogues.guards import choose_speaker_names
from tasks.foundation.ids import content_id, seed_of
from tasks.foundation.stage import StageContext
from tasks.foundation.tables.personas import Character
from tasks.foundation.tables.scenes import Conflict, Scene
from tasks.foundation.tables.types import Language

SPREAD = 8
"""Of the lengths asked for, the lower the wider. About the mean of DEMO (section 3.1), 18.3 utterances, from 10 to its
longest of 26, their standard deviation is 3.3: one in a hundred is that long."""


@dataclass(frozen=True, slots=True)
class DialogueSetup:
    """A selected pairing with all that a writer needs."""

    conflict: Conflict
    scene: Scene
    character1: Character
    character2: Character

    @property
    def dialogue_id(self) -> str:
        return content_id("dialogue", self.conflict.pairing_id)

    @property
    def language(self) -> Language:
        return self.scene.language

    @property
    def names(self) -> tuple[str, str]:
        return choose_speaker_names(self.character1.name, self.character2.name, self.language)


def choose_target(context: StageContext, setup: DialogueSetup) -> int | None:
    """How many utterances the dialogue is asked for; None for any number within the bounds."""
    section = context.settings.dialogues
    if section.target_turns is None:
        return None
    seed = seed_of(context.settings.run.seed, "target turns", setup.dialogue_id)
    return draw_length(section.min_turns, section.max_turns, section.target_turns, seed)


def draw_length(shortest: int, longest: int, mean: float, seed: int) -> int:
    """A length from `shortest` to `longest` with this mean: beta-binomial, which is bounded at both ends, has any mean
    between them, and is as wide as `SPREAD` says."""
    rng = random.Random(seed)
    share = (mean - shortest) / (longest - shortest) if longest > shortest else 0.0
    chance = rng.betavariate(SPREAD * share, SPREAD * (1 - share)) if 0 < share < 1 else share
    return shortest + sum(rng.random() < chance for _ in range(longest - shortest))
