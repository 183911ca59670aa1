"""Column types: Python annotations on a row model, and the Arrow type each one stands for.

>>> str(arrow_type(Int32 | None))
'int32'
"""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, get_args, get_origin

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field


@dataclass(frozen=True, slots=True)
class Arrow:
    """Marks an annotation with the Arrow type it is stored as."""

    type: pa.DataType


Int32 = Annotated[int, Arrow(pa.int32()), Field(ge=-(2**31), lt=2**31)]
Int64 = Annotated[int, Arrow(pa.int64()), Field(ge=-(2**63), lt=2**63)]
Float32 = Annotated[float, Arrow(pa.float32()), Field(allow_inf_nan=False)]
Float64 = Annotated[float, Arrow(pa.float64()), Field(allow_inf_nan=False)]
Json = Annotated[str, Arrow(pa.utf8())]
"""utf8 holding canonical JSON."""
Score10 = Annotated[int, Arrow(pa.int32()), Field(ge=0, le=10)]
"""An integer from 0 to 10."""
Language = Literal["en", "zh"]

_PLAIN: dict[Any, pa.DataType] = {
    str: pa.utf8(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us", tz="UTC"),
}


class Row(BaseModel):
    """Base of every row model: frozen, nothing extra, no silent conversion of wrong types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def is_optional(annotation: Any) -> bool:
    """Whether the annotation admits None."""
    return type(None) in get_args(annotation) and get_origin(annotation) in (typing.Union, types.UnionType)


def _without_none(annotation: Any) -> Any:
    if not is_optional(annotation):
        return annotation
    rest = [a for a in get_args(annotation) if a is not type(None)]
    if len(rest) != 1:
        raise TypeError(f"a column has one type or one type and None, found {annotation!r}")
    return rest[0]


def arrow_type(annotation: Any, metadata: typing.Sequence[Any] = ()) -> pa.DataType:
    """The Arrow type of a column annotation; TypeError for one that no column may have."""
    for mark in metadata:
        if isinstance(mark, Arrow):
            return mark.type
    annotation = _without_none(annotation)
    if get_origin(annotation) is Annotated:
        base, *marks = get_args(annotation)
        return arrow_type(base, marks)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if get_origin(annotation) is Literal:
        return pa.utf8()
    if get_origin(annotation) is list:
        return pa.list_(arrow_type(get_args(annotation)[0]))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return pa.struct(arrow_fields(annotation))
    raise TypeError(f"no Arrow type is declared for {annotation!r}")


def arrow_fields(model: type[BaseModel]) -> list[pa.Field]:
    """The Arrow fields of a row model in declaration order, nullable where the annotation admits None."""
    return [
        pa.field(name, arrow_type(info.annotation, info.metadata), nullable=is_optional(info.annotation))
        for name, info in model.model_fields.items()
    ]
