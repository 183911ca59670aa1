"""Nemotron-Personas-USA, both versions (22 and 23 columns), and the registration-only extended set.

One row is one persona. v1.0 lacks `cultural_background`; the extended set has names, `ethnic_background`,
`detailed_occupation` and `concise_persona` instead of `persona`. `*_list` columns are the text of Python lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.foundation.ids import canonical_json
from tasks.foundation.settings import PersonaSource
from tasks.foundation.sources import SourceRow, open_source
from tasks.foundation.sources.script import language_of
from tasks.personas.ages import parse_age
from tasks.personas.big_five import big_five_of
from tasks.personas.literals import parse_list
from tasks.personas.occupations import occupation_mapping
from tasks.personas.reading import BadRow, Persona, Reading, first_of, text_of
from tasks.personas.repeats import read_each
from tasks.personas.verbalise import facts_sentence, paragraph

REQUIRED = ("uuid", ("persona", "concise_persona"), "age", "sex", "occupation")


def read_nemotron(source: PersonaSource) -> Reading:
    """All personas of a Nemotron file or dataset; SourceError for a problem of the whole source."""
    rows = open_source(source, required=REQUIRED, where=source.where)
    return read_each(rows, source.pool, parse_row)


def parse_row(row: SourceRow) -> Persona:
    """One persona; BadRow for a row without id or text, with an impossible age or a list that is none."""
    value: Mapping[str, Any] = row.value
    texts = {name: text_of(first_of(value, names)) for name, names in _TEXTS.items()}
    source_key, persona = texts["uuid"], texts["persona"]
    if source_key is None or persona is None:
        raise BadRow(f"expected a uuid and a persona text, found uuid {value.get('uuid')!r}, persona {persona!r}")
    age = parse_age(value.get("age"))
    occupation = texts["detailed_occupation"] or texts["occupation"]
    facts = facts_sentence(
        age=age,
        sex=texts["sex"],
        marital_status=texts["marital_status"],
        education=texts["education_level"],
        occupation=occupation,
        city=texts["city"],
        state=texts["state"],
    )
    description = paragraph(
        [facts, persona, *(texts[name] for name in ("professional_persona", "hobbies", "cultural_background"))]
    )
    return Persona(
        source_key=source_key,
        language=language_of(description),
        description=description,
        raw=canonical_json(value),
        name=_name(value),
        age=age,
        sex=texts["sex"],
        occupation=occupation,
        occupation_group=_group(texts["occupation"], texts["detailed_occupation"]),
        education_level=texts["education_level"],
        marital_status=texts["marital_status"],
        race_ethnicity=texts["race_ethnicity"],
        city=texts["city"],
        state=texts["state"],
        country=texts["country"],
        big_five=big_five_of(value),
        hobbies=parse_list(value.get("hobbies_and_interests_list"), "hobbies_and_interests_list"),
    )


def _group(occupation: str | None, detailed: str | None) -> str | None:
    """The group of the occupation; of the detailed one where the first fits none."""
    groups = [occupation_mapping().group_of(text) for text in (occupation, detailed)]
    return next((group for group in groups if group not in (None, "other")), groups[0] or groups[1])


def _name(value: Mapping[str, Any]) -> str | None:
    parts = [text_of(value.get(name)) for name in ("first_name", "middle_name", "last_name")]
    return " ".join(part for part in parts if part) or None


_TEXTS: dict[str, tuple[str, ...]] = {
    "uuid": ("uuid",),
    "persona": ("persona", "concise_persona"),
    "professional_persona": ("professional_persona",),
    "hobbies": ("hobbies_and_interests",),
    "cultural_background": ("cultural_background",),
    "sex": ("sex",),
    "marital_status": ("marital_status",),
    "education_level": ("education_level",),
    "occupation": ("occupation",),
    "detailed_occupation": ("detailed_occupation",),
    "race_ethnicity": ("ethnic_background", "race_ethnicity"),
    "city": ("city",),
    "state": ("state", "region"),
    "country": ("country",),
}
"""What is read, and the columns it may stand in."""
