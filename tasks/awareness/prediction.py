"""A target's reply in the shape of the gold labels, so that a judge can lay the two side by side. Pure.

{"persona": {"participant1": {"name": "Ada", …, "big_five": [["Openness", "High"], …]}, "participant2": …}}
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from tasks.foundation.demo.elements import canonical_emotion, pair_traits, show_value
from tasks.foundation.tables.dialogues import AwarenessTask
from tasks.foundation.tables.types import Language


def shape_prediction(task: AwarenessTask, reply: BaseModel, language: Language) -> dict[str, Any]:
    """The labels of a reply as the gold has them: fixed ones by their names in the item's language, traits as pairs."""
    plain = reply.model_dump()
    match task:
        case "persona":
            plain["persona"] = {number: _shape(labels, language) for number, labels in plain["persona"].items()}
        case "scene":
            plain["scene"] = _shape(plain["scene"], language)
        case "utterance":
            plain = _shape({**plain, "emotion": canonical_emotion(plain["emotion"])}, language)
    return plain


def _shape(labels: dict[str, Any], language: Language) -> dict[str, Any]:
    return {
        name: pair_traits(value, language) if name == "big_five" else show_value(name, value, language)
        for name, value in labels.items()
    }
