"""The fifteen sub-indicators of a turn (configs/taxonomies/rubric.yaml): columns, dimensions, reply models.

A score is one of {0, 0.5, 1} (EYT-Bench section 3.5.3) or {0, 1} (its appendix D); any other number is an
invalid reply and never rounded.

>>> [len(portion) for portion in portions("dimension")], portions("none")[0][0]
([5, 5, 5], 'empathy_recognition')
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, WithJsonSchema, create_model

from tasks.foundation.settings.taxonomies import Label, taxonomy
from tasks.foundation.texts.replies import PartsReply, Remark, ReplyModel, asked

RUBRIC = "rubric"
SCALES: dict[str, tuple[float, ...]] = {"half": (0, 0.5, 1), "binary": (0, 1)}

METRIC_OF = {"persona": "persona_alignment"}
"""Dimensions that are called otherwise in metrics than in columns."""

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


def group_columns() -> dict[str, tuple[str, ...]]:
    """The sub-indicators of each dimension, by the name of its metrics."""
    return {
        METRIC_OF.get(names[0].partition("_")[0], names[0].partition("_")[0]): names
        for names in split_columns("dimension")
    }


def describe_columns(names: tuple[str, ...], language: str, *, half: bool = False) -> list[str]:
    """'empathy_recognition: sees what the user feels. 1: … 0: …' for each of `names`; with `half`, '0.5: …' between."""
    labels = {label.name: label for label in taxonomy(RUBRIC).labels}
    return [_describe(labels[name], language, half=half) for name in names]


def _describe(label: Label, language: str, *, half: bool) -> str:
    name, definition, anchor, worst = (
        (f"{label.name}：{label.zh}，", label.definition_zh, f"0.5：{label.half_zh}", "0：")
        if language == "zh"
        else (f"{label.name}: ", label.definition, f"0.5: {label.half} ", "0: ")
    )
    upper, worst, lower = (definition or "").rpartition(worst)
    return f"{name}{upper}{anchor if half else ''}{worst}{lower}"


@cache
def make_turn_reply(names: tuple[str, ...], scale: Scale) -> type[PartsReply]:
    """A reason and a score for each of `names`, by name: none can be missed, repeated or swapped."""
    score = create_model("SubScore", __base__=SubReason, score=(_one_of(SCALES[scale]), asked("1 best", "1 为最好")))
    fields: dict[str, Any] = dict.fromkeys(names, (score, asked("reason and score", "理由和分数")))
    return create_model("TurnOpinion", __base__=PartsReply, **fields)


class SubReason(ReplyModel):
    """The reason comes before the score it is for."""

    reason: Remark = asked("what in the answer the score rests on", "打分所依据的回答内容")


def _one_of(scale: tuple[float, ...]) -> Any:
    """The annotation of a number from `scale`. (A Literal would take `true` for 1.)"""

    def check(score: float) -> float:
        if score not in scale:
            raise ValueError(f"expected one of {', '.join(f'{value:g}' for value in scale)}")
        return score

    return Annotated[float, AfterValidator(check), WithJsonSchema({"type": "number", "enum": list(scale)})]
