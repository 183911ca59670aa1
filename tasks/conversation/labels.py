"""The three label sets of a user turn: how prompts show them, how replies name them.

A reply's schema lists the labels, so providers that enforce schemas give nothing else. Where they do not,
the label still reaches us and `canonical` decides: the simulator is asked again, the target is wrong.

>>> canonical("explicit_intent", " seeking_advice "), canonical("explicit_intent", "Advice")
('Seeking Advice', None)
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import WithJsonSchema

from tasks.foundation.settings.taxonomies import taxonomy

EXPLICIT, LATENT, EMOTION = "explicit_intent", "latent_intent", "user_emotion"
TAXONOMIES = (EXPLICIT, LATENT, EMOTION)

Progress = Literal["not_started", "in_progress", "achieved"]


@dataclass(frozen=True, slots=True)
class Gold:
    """What the simulator says of its own turn."""

    explicit: str
    latent: str
    emotion: str


def list_labels(taxonomy_name: str, language: str) -> list[str]:
    """'Hope: expecting something good'; in Chinese the stored English name with the Chinese one."""
    labels = taxonomy(taxonomy_name).labels
    return [label.shown("zh") if language == "zh" else f"{label.name}: {label.definition}" for label in labels]


def one_of(*names: str) -> Any:
    """The annotation of a text whose schema lists `names` but which validates whatever it is."""
    return Annotated[str, WithJsonSchema({"type": "string", "enum": list(names)})]


def find_label(taxonomy_name: str, said: str) -> str | None:
    """The label that `said` names, in English or Chinese, whatever its case and spacing; None: no label."""
    return _spellings(taxonomy_name).get(_folded(said))


def find_progress(said: str) -> Progress | None:
    """The progress that `said` names; None: out of vocabulary."""
    return next((progress for progress in get_args(Progress) if _folded(progress) == _folded(said)), None)


@cache
def _spellings(taxonomy_name: str) -> dict[str, str]:
    return {
        _folded(spelling): label.name
        for label in taxonomy(taxonomy_name).labels
        for spelling in (label.zh, label.shown("zh"), label.name)
    }


def _folded(text: str) -> str:
    for _ in range(2):
        text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(text.replace("_", " ").replace("-", " ").split())
