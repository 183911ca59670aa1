"""Pairings that ages, names and single words rule out before anything is paid for (configs/pairing_rules.yaml)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from tasks.foundation import CONFIGS
from tasks.foundation.errors import ConfigError
from tasks.foundation.settings.sections import PairingRule
from tasks.foundation.settings.strict_yaml import read_config
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.types import Language

RULES = CONFIGS / "pairing_rules.yaml"
SCENE_COLUMNS = ("scene_id", "goal_type", "goal1", "goal2", "time", "location")
CHARACTER_COLUMNS = ("character_id", "name", "given_name", "persona_id", "age_band")

Words = Annotated[list[str], Field(min_length=1)]


class AdultWords(BaseModel):
    model_config = ConfigDict(extra="forbid")

    en: Words
    zh: Words


class PairingRules(BaseModel):
    model_config = ConfigDict(extra="forbid")

    description: str
    child_bands: list[str]
    adult_words: AdultWords

    def pattern(self, language: Language) -> str:
        """What finds the words of a language."""
        words = "|".join(f"(?:{word})" for word in getattr(self.adult_words, language))
        return rf"(?i)\b(?:{words})\b" if language == "en" else words


@cache
def pairing_rules(path: Path = RULES) -> PairingRules:
    """The rules, checked; ConfigError for an age band that is none or words that are no pattern."""
    rules = read_config(path, PairingRules, "pairing rules")
    if unknown := sorted(set(rules.child_bands) - set(taxonomy("age_band").names)):
        raise ConfigError(
            f"pairing rules {path}: child_bands has {', '.join(unknown)}; expected some of "
            f"{', '.join(taxonomy('age_band').names)}"
        )
    for language in AdultWords.model_fields:
        try:
            pl.Series([""]).str.contains(rules.pattern(language))  # type: ignore[arg-type]
        except pl.exceptions.ComputeError as error:
            raise ConfigError(f"pairing rules {path}: the words of {language} make no pattern: {error}") from None
    return rules


def find_adult_scenes(scenes: pl.DataFrame, language: Language) -> set[str]:
    """Ids of the scenes that have a word in them which no child's scene has."""
    said = pl.concat_str("goal1", "goal2", "time", "location", separator="\n")
    return set(scenes.filter(said.str.contains(pairing_rules().pattern(language)))["scene_id"].to_list())


def make_refusal(
    rules: Collection[PairingRule], scenes: pl.DataFrame, characters: pl.DataFrame, language: Language
) -> Callable[[str, str, str], PairingRule | None]:
    """A function of a scene and two characters: why they may not meet; None where nothing plain speaks against it."""
    ids = characters["character_id"]
    names, given_names = (
        dict(zip(ids, characters[column].str.strip_chars().str.to_lowercase(), strict=True))
        for column in ("name", "given_name")
    )
    personas = dict(zip(ids, characters["persona_id"], strict=True))
    young = characters.filter(pl.col("age_band").is_in(pairing_rules().child_bands))
    children, adult = set(young["character_id"].to_list()), find_adult_scenes(scenes, language)

    def refuse(scene: str, one: str, two: str) -> PairingRule | None:
        found: dict[PairingRule, bool] = {
            "same_name": names[one] == names[two] or given_names[one] == given_names[two],
            "same_persona": personas[one] is not None and personas[one] == personas[two],
            "child_in_adult_scene": scene in adult and (one in children or two in children),
        }
        return next((rule for rule in rules if found[rule]), None)

    return refuse
