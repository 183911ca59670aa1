"""The fifteen sub-indicators of a turn (configs/taxonomies/rubric.yaml): columns, dimensions, reply models.

A score is one of {0, 0.5, 1} (EYT-Bench section 3.5.3) or {0, 1} (its appendix D); any other number is an
invalid reply and never rounded.

>>> [len(portion) for portion in portions("dimension")], portions("none")[0][0]
([5, 5, 5], 'empathy_recognition')
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema, create_model

from tasks.foundation.demo.elements import ReplyModel
from tasks.foundation.settings.taxonomies import taxonomy

RUBRIC = "rubric"
SCALES: dict[str, tuple[float, ...]] = {"half": (0, 0.5, 1), "binary": (0, 1)}

Scale = Literal["half", "binary"]
Split = Literal["none", "dimension"]


def list_columns() -> tuple[str, ...]:
    """The sub-indicators in order: the columns of turn_judgements, the keys of a reply."""
    return taxonomy(RUBRIC).names


def split_columns(split: Split) -> tuple[tuple[str, ...], ...]:
    """The sub-indicators that one request asks for: all of them, or one dimension's."""
    if split == "none":
        return (list_columns(),)
    dimensions = dict.fromkeys(label.group for label in taxonomy(RUBRIC).labels)
    return tuple(tuple(label.name for label in taxonomy(RUBRIC).group(group or "")) for group in dimensions)


def describe_columns(names: tuple[str, ...], language: str) -> list[str]:
    """'empathy_recognition: sees what the user feels. 1: … 0: …' for each of `names`."""
    labels = {label.name: label for label in taxonomy(RUBRIC).labels}
    colon = "：" if language == "zh" else ": "
    return [f"{name}{colon}{labels[name].zh if language == 'zh' else labels[name].definition}" for name in names]


@cache
def make_turn_reply(names: tuple[str, ...], scale: Scale) -> type[BaseModel]:
    """A reason and a score for each of `names`, by name: none can be missed, repeated or swapped."""
    score = create_model("SubScore", __base__=SubReason, score=(_one_of(SCALES[scale]), ...))
    fields: dict[str, Any] = dict.fromkeys(names, (score, ...))
    return create_model("TurnOpinion", __base__=ReplyModel, **fields)


class SubReason(ReplyModel):
    """The reason comes before the score it is for."""

    reason: str = Field(min_length=1, max_length=120)


def _one_of(scale: tuple[float, ...]) -> Any:
    """The annotation of a number from `scale`. (A Literal would take `true` for 1.)"""

    def check(score: float) -> float:
        if score not in scale:
            raise ValueError(f"expected one of {', '.join(f'{value:g}' for value in scale)}")
        return score

    return Annotated[float, AfterValidator(check), WithJsonSchema({"type": "number", "enum": list(scale)})]
