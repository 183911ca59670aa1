"""The label sets of a user turn.

A reply's schema lists the labels, so providers that enforce schemas give nothing else. Where they do not, the label
still reaches us and `Taxonomy.find` decides: the simulator is asked again, the target is wrong.

>>> taxonomy(EXPLICIT).find(" seeking_advice "), taxonomy(EXPLICIT).find("寻求建议"), taxonomy(EXPLICIT).find("Advice")
('Seeking Advice', 'Seeking Advice', None)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from tasks.foundation.settings.taxonomies import taxonomy

EXPLICIT, LATENT, EMOTION, PROGRESS = "explicit_intent", "latent_intent", "user_emotion", "progress"
TAXONOMIES = (EXPLICIT, LATENT, EMOTION, PROGRESS)

Progress = Literal["not_started", "in_progress", "achieved"]


@dataclass(frozen=True, slots=True)
class Gold:
    """What the simulator says of its own turn."""

    explicit: str
    latent: str
    emotion: str


def find_progress(said: str) -> Progress | None:
    """The progress that `said` names; None: out of vocabulary."""
    return cast(Progress | None, taxonomy(PROGRESS).find(said))
