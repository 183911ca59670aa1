"""Closed label sets, read from configs/taxonomies/<name>.yaml and checked when loaded.

A file has `description`, `expected_count` and `labels`: each with `name` (what tables hold, in every
language), `definition` and `zh` (the name shown in Chinese prompts). A user who has the papers'
original lists replaces the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from pydantic import BaseModel, ConfigDict

from tasks.foundation import CONFIGS
from tasks.foundation.errors import ConfigError
from tasks.foundation.ids import digest
from tasks.foundation.settings.strict_yaml import read_config


class Label(BaseModel):
    """One label. `low` and `high` bound a numeric band where the taxonomy is one of bands; `half` is what a score
    between 0 and 1 looks like, where it is a rubric."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    definition: str
    zh: str
    group: str | None = None
    low: int | None = None
    high: int | None = None
    half: str | None = None
    half_zh: str | None = None

    def shown(self, language: str) -> str:
        """The label as a prompt shows it: the stored name, with its Chinese name beside it in zh."""
        return f"{self.name}（{self.zh}）" if language == "zh" else self.name


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
    if len(set(names)) != len(names):
        raise ConfigError(f"taxonomy {path}: label names must differ, found {names}")
    return Taxonomy(name, file.labels)
