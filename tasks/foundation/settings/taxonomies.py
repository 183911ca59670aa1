"""Closed label sets, read from configs/taxonomies/<name>.yaml and checked when loaded.

A file has `description`, `expected_count` and `labels`: each with `name` (what tables hold, in every language) and
`definition`, and with `zh` and `definition_zh`, which stand for them wherever the language is Chinese. A user who has
the papers' original lists replaces the file.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from tasks.foundation import CONFIGS
from tasks.foundation.errors import ConfigError
from tasks.foundation.ids import digest
from tasks.foundation.settings.strict_yaml import read_config

_CHINESE = re.compile("[一-鿿]")


class Label(BaseModel):
    """One label. `low` and `high` bound a numeric band where the taxonomy is one of bands; `half` is what a score
    between 0 and 1 looks like, where it is a rubric; `opposite` is the other end of a trait."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    definition: str
    zh: str
    definition_zh: str
    group: str | None = None
    low: int | None = None
    high: int | None = None
    half: str | None = None
    half_zh: str | None = None
    opposite: str | None = None
    opposite_zh: str | None = None

    @model_validator(mode="after")
    def _is_whole_in_chinese(self) -> Self:
        for name, text in self.model_dump(include={"definition", "half", "opposite"}).items():
            chinese = getattr(self, f"{name}_zh")
            if (text is None) != (chinese is None) or (chinese is not None and not _CHINESE.search(chinese)):
                raise ValueError(f"{self.name}: expected {name} in Chinese too, as {name}_zh, found {chinese!r}")
        return self

    def shown(self, language: str) -> str:
        """Its name in the language."""
        return self.zh if language == "zh" else self.name

    def defined(self, language: str) -> str:
        """Its definition in the language."""
        return self.definition_zh if language == "zh" else self.definition

    def opposed(self, language: str) -> str:
        """The other end of it, in the language."""
        return (self.opposite_zh if language == "zh" else self.opposite) or ""

    def described(self, language: str) -> str:
        """'Hope: expecting something good', '希望：期待好事发生'."""
        return f"{self.shown(language)}{'：' if language == 'zh' else ': '}{self.defined(language)}"


def gloss(shown: str, meaning: str, language: str) -> str:
    """'rational (weighs evidence)', '理性（权衡依据）'."""
    return f"{shown}（{meaning}）" if language == "zh" else f"{shown} ({meaning})"


class _TaxonomyFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    description: str
    expected_count: int
    labels: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class Taxonomy:
    name: str
    labels: tuple[Label, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(label.name for label in self.labels)

    def group(self, name: str) -> tuple[Label, ...]:
        """The labels of one group, in order."""
        return tuple(label for label in self.labels if label.group == name)

    def describe(self, language: str) -> list[str]:
        """Every label with its definition, as prompts list them."""
        return [label.described(language) for label in self.labels]

    def find(self, word: str) -> str | None:
        """The stored name of the label that `word` names in either language, whatever its case and spacing; None: no
        label."""
        return _spellings(self.name).get(_plain(word))

    def show(self, word: str, language: str) -> str:
        """A stored name as the language has it; a word that is no label as it is."""
        return next((label.shown(language) for label in self.labels if label.name == word), word)

    @property
    def fingerprint(self) -> str:
        return digest([x.model_dump() for x in self.labels])


@cache
def taxonomy(name: str) -> Taxonomy:
    """The taxonomy of configs/taxonomies/<name>.yaml; ConfigError when it is missing or malformed."""
    path = CONFIGS / "taxonomies" / f"{name}.yaml"
    file = read_config(path, _TaxonomyFile, "taxonomy")
    names = [label.name for label in file.labels]
    if len(names) != file.expected_count:
        raise ConfigError(f"taxonomy {path}: expected {file.expected_count} labels, found {len(names)}")
    for spelled in (names, [label.zh for label in file.labels]):
        if len(set(spelled)) != len(spelled):
            raise ConfigError(f"taxonomy {path}: label names must differ, found {spelled}")
    return Taxonomy(name, file.labels)


@cache
def _spellings(name: str) -> dict[str, str]:
    return {_plain(spelling): label.name for label in taxonomy(name).labels for spelling in (label.zh, label.name)}


def _plain(word: str) -> str:
    return fold(word.replace("_", " ").replace("-", " "))


def fold(text: str) -> str:
    """Equal for texts that differ only in Unicode form (NFKC), case or spaces; twice, because folding the case can undo
    the form."""
    for _ in range(2):
        text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(text.split())
