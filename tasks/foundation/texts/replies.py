"""What models fill in: fields whose meaning is said in both languages, texts whose limit has a name, and parts of which
one can be wrong without the others.

A text a little over its limit is a text: up to half as much again it stays, beyond that it ends with a sentence or a
word that still fits. Only what has no meaning without it is strict: labels of closed sets, numbers, fields.

>>> class Note(ReplyModel):
...     mood: Word = asked("how they feel", "心情")
>>> find_limits(Note)
frozenset({'word'})
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PrivateAttr,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    create_model,
)
from pydantic_core import core_schema

from tasks.foundation.settings.sections import TextLimitsSection
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.types import Language

KEPT_SHARE = 1.5
"""A text up to so many times its limit is kept as it is."""

LIMIT, MEANING_ZH, NAMES_ZH = "x-limit", "x-zh", "x-names-zh"
"""Keys in a bare schema: the name of a text's limit and how many times it counts; a field's meaning in Chinese; the
names of a closed set in Chinese."""

_FIRST_WIDE = 0x2E80
_WORD_SIGNS = re.compile(r"[\w'’-]{2}")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)]?(?=\s)|[。！？…][”’」』）]?")


@dataclass(frozen=True, slots=True)
class Manner:
    """How a reply is asked for: within which limits, and in which language."""

    limits: TextLimitsSection
    language: Language


class ReplyModel(BaseModel):
    """Base of what a model fills in; texts are trimmed."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True, defer_build=True)

    manner: ClassVar[Manner | None] = None
    """How it is asked for; None: within no limits. See `bind`."""


class PartsReply(ReplyModel):
    """A reply of parts that stand alone: where some cannot be used, or were cut off, the others are kept.

    The parts are its fields or, with `listed`, the items of that field.
    """

    listed: ClassVar[str] = ""

    @property
    def parts(self) -> dict[str, Any]:
        """The fields that could be used, by name."""
        return {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}

    _lost: list[Any] = PrivateAttr(default_factory=list)

    @property
    def lost(self) -> list[Any]:
        """Of a list, the items as they came that could not be used; None stands for those that were cut off."""
        return self._lost

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any], lost: Sequence[Any] = ()) -> Self:
        """A reply of the parts that could be used."""
        made = cls.model_construct(set(parts), **parts)
        made._lost.extend(lost)
        return made


R = TypeVar("R", bound=BaseModel)


@cache
def bind(model: type[R], manner: Manner) -> type[R]:
    """`model` as it is asked for within the limits and in the language of `manner`; one that is no `ReplyModel` has no
    limits."""
    if not issubclass(model, ReplyModel):
        return model
    bound: type[R] = type(model)(  # type: ignore[misc]
        model.__name__, (model,), {"__module__": model.__module__, "manner": manner}
    )
    return bound


def asked(en: str, zh: str, told: Mapping[str, Any] | None = None, **bounds: Any) -> Any:
    """A field with its meaning in English and in Chinese; `told`: keys of its schema that nothing is held to."""
    return Field(description=en, json_schema_extra={MEANING_ZH: zh, **(told or {})}, **bounds)


@dataclass(frozen=True, slots=True)
class Limit:
    """Marks a text with the name of its limit, in `text_limits` of the settings. `held` False: the limit is told to the
    model, and a longer text counts all the same. `times`: so many times the limit."""

    name: str
    held: bool = True
    times: int = 1

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.with_info_after_validator_function(self._fit, handler(source))

    def __get_pydantic_json_schema__(self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        return {**handler(schema), "minLength": 1, LIMIT: [self.name, self.times]}

    def _fit(self, text: str, info: ValidationInfo) -> str:
        """`text` as far as it may go; what was cut is counted in the context of the validation."""
        context: Mapping[str, Any] = info.context or {}
        manner: Manner | None = context.get("manner")
        if manner is None or not self.held:
            return text
        most = int(KEPT_SHARE * self.times * manner.limits.characters(self.name, manner.language))
        if len(text) <= most:
            return text
        context["cut"].append(info.field_name or "")
        return cut_text(text, most)


def cut_text(text: str, most: int) -> str:
    """The sentences of `text` that fit into `most` characters, or its words where the sentences would be less than half
    of that. Only a single word that does not fit is cut.

    >>> cut_text("She sings. She dances.", 15), cut_text("She sings and dances.", 15)
    ('She sings.', 'She sings and')
    """
    if len(text) <= most:
        return text
    ends = [found.end() for found in _SENTENCE_END.finditer(text, 0, most + 1) if found.end() <= most]
    if ends and 2 * ends[-1] >= most:
        return text[: ends[-1]]
    end = next((place for place in range(most, 0, -1) if not _is_within_word(text, place)), most)
    return text[:end].rstrip(" \t\n,;:，、；：") or text[:most]


def _is_within_word(text: str, place: int) -> bool:
    """Whether a cut before the sign at `place` would part a word; signs of Chinese stand for themselves."""
    return ord(text[place]) < _FIRST_WIDE and _WORD_SIGNS.fullmatch(text[place - 1 : place + 1]) is not None


Filled = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Name = Annotated[Filled, Limit("name")]
Word = Annotated[Filled, Limit("word")]
Phrase = Annotated[Filled, Limit("phrase")]
Label = Annotated[Filled, Limit("label")]
Goal = Annotated[Filled, Limit("goal")]
Summary = Annotated[Filled, Limit("summary")]
Background = Annotated[Filled, Limit("background")]
Utterance = Annotated[Filled, Limit("utterance")]
Message = Annotated[Filled, Limit("message")]
Reasoning = Annotated[Filled, Limit("reasoning")]
JudgeReason = Annotated[Filled, Limit("judge_words")]
Remark = Annotated[Filled, Limit("remark_words")]
"""Texts that are not empty, each with its limit."""


@dataclass(frozen=True, slots=True)
class LabelOf:
    """Marks a text that is a label of a taxonomy: models are shown the names of the reply's language, those of either
    are read, and the stored name is what comes of it."""

    taxonomy: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        labels = taxonomy(self.taxonomy).labels
        stored = {label.zh: label.name for label in labels}

        def read_name(said: Any) -> Any:
            return stored.get(said.strip(), said.strip()) if isinstance(said, str) else said

        names = core_schema.literal_schema([label.name for label in labels])
        return core_schema.no_info_before_validator_function(read_name, names)

    def __get_pydantic_json_schema__(self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        return {**handler(schema), NAMES_ZH: [label.zh for label in taxonomy(self.taxonomy).labels]}


def list_names(taxonomy_name: str) -> Any:
    """The annotation of a label of a taxonomy."""
    return Annotated[str, LabelOf(taxonomy_name)]


def suggest_names(taxonomy_name: str) -> Any:
    """A text whose schema lists the names of a taxonomy in the reply's language, but which validates whatever it is."""
    labels = taxonomy(taxonomy_name).labels
    names = {"enum": [label.name for label in labels], NAMES_ZH: [label.zh for label in labels]}
    return Annotated[str, WithJsonSchema({"type": "string", **names})]


@cache
def part_model(model: type[PartsReply], name: str) -> type[ReplyModel]:
    """A model of one field of `model`."""
    field = model.model_fields[name]
    made: type[ReplyModel] = create_model(model.__name__, __base__=ReplyModel, **{name: (field.annotation, field)})  # type: ignore[call-overload]
    return bind(made, model.manner) if model.manner else made


@cache
def find_limits(model: type[BaseModel]) -> frozenset[str]:
    """The names of the limits of all texts in `model`."""
    return frozenset(_names_in(model.model_json_schema()))


def _names_in(part: Any) -> list[str]:
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    own = [part[LIMIT][0]] if isinstance(part, dict) and isinstance(part.get(LIMIT), list) else []
    return own + [name for each in inner for name in _names_in(each)]
