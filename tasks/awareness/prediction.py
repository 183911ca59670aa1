"""A target's reply in the shape of the gold labels, so that a judge can lay the two side by side. Pure.

{"persona": {"participant1": {"name": "Ada", …, "big_five": [["Openness", "High"], …]}, "participant2": …}}
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from tasks.foundation.demo.elements import TRAITS, canonical_emotion
from tasks.foundation.tables.dialogues import AwarenessTask


def shape_prediction(task: AwarenessTask, reply: BaseModel) -> dict[str, Any]:
    """The labels of a reply as the gold has them: traits as pairs, the seven emotions by their names."""
    plain = reply.model_dump()
    if task == "persona":
        for persona in plain["persona"].values():
            persona["big_five"] = [[trait.capitalize(), persona["big_five"][trait]] for trait in TRAITS]
    if task == "utterance":
        plain["emotion"] = canonical_emotion(plain["emotion"])
    return plain
