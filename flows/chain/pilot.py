"""A pilot: some rows of every stage of a profile, in a build of its own, before the whole is paid for.

What a pilot asks is what the whole asks, on fewer rows: amounts are drawn in a seeded order, so that fewer are the
first of more, and the whole gets its replies from the reply cache.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic.fields import FieldInfo

from tasks.foundation.settings import Settings
from tasks.foundation.settings.sections import AtMost, HowMany, PerLanguage, Section
from tasks.foundation.store.files import write_text
from tasks.foundation.store.layout import Layout
from tasks.report.prompt_section import whole_file

EACH_ROW_TAKES = {
    "personas.characters": 2,  # two meet in a dialogue
    "conflicts.pairings": 4,  # a quarter of them is coherent, where an assessor is strict
}
"""How many of a setting's things one row further on needs, where that is more than one."""

KEEP_ALL = "conflicts.keep_share=1.0"
"""A share would be taken of pairings that a pilot does not have."""


def list_pilot_settings(settings: Settings, rows: int) -> list[str]:
    """The overrides that bring every amount of the settings down to what `rows` rows a language (or pool) take."""
    found = [KEEP_ALL]
    for name, section in settings:
        found += _fewer(name, section, rows) if isinstance(section, Section) else ()
    return found


def write_whole(layout: Layout, build: str, profile: str, whole: dict[str, Any]) -> None:
    """Keeps what the whole of a profile is expected to take with the pilot, for its report."""
    text = json.dumps({"profile": profile, **whole}, ensure_ascii=False, indent=1)
    write_text(whole_file(layout, build), layout.scratch, text)


def _fewer(prefix: str, section: Section, rows: int) -> Iterator[str]:
    for name, field in type(section).model_fields.items():
        setting, value = f"{prefix}.{name}", getattr(section, name)
        most = rows * EACH_ROW_TAKES.get(setting, 1)
        if isinstance(value, PerLanguage) and _is_amount(field):
            fewer = {language: min(of, most) for language, of in value.model_dump().items()}
            yield f"{setting}={json.dumps(fewer)}"
        elif isinstance(value, int | None) and _is_amount(field):
            of_all_languages = most * _languages(section)
            yield f"{setting}={of_all_languages if value is None else min(value, of_all_languages)}"
        elif isinstance(value, Section):
            yield from _fewer(setting, value, rows)


def _is_amount(field: FieldInfo) -> bool:
    return any(mark in (HowMany, AtMost) for mark in field.metadata if isinstance(mark, type))


def _languages(section: Section) -> int:
    """How many languages a single amount of a section is for."""
    asked = [sum(map(bool, value.model_dump().values())) for _, value in section if isinstance(value, PerLanguage)]
    return max([1, *asked])
