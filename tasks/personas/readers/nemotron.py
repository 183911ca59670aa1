"""Nemotron-Personas-USA, both versions (22 and 23 columns), and the registration-only extended set.

One row is one persona. v1.0 lacks `cultural_background`; the extended set has names, `ethnic_background`,
`detailed_occupation`, trait scores and `concise_persona` instead of `persona`. `*_list` columns are the text of
Python lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.foundation.settings.sections import PersonaSource
from tasks.foundation.sources import BadRow, SourceRow, open_source
from tasks.foundation.sources.literals import parse_list
from tasks.foundation.sources.values import row_language
from tasks.foundation.tables.types import Language
from tasks.personas.readers.identity import drop_identity
from tasks.personas.readers.occupations import occupation_group
from tasks.personas.readers.reading import Persona, Reading, chain_rows, check_length, first_given, read_each
from tasks.personas.readers.values import big_five_of, bucket_of_age, parse_age, sex_of, text_of
from tasks.personas.readers.verbalise import join_sentences, spell_out, verbalise_object, write_facts

REQUIRED = ("uuid", ("persona", "concise_persona"), "age", "sex", "occupation")
PROSE = ("professional_persona", "hobbies_and_interests", "cultural_background")
"""What follows facts and persona in a description."""
SKILLS, HOBBIES = "skills_and_expertise_list", "hobbies_and_interests_list"


def read_nemotron(sources: Sequence[PersonaSource], reading: Reading) -> Iterator[Persona | None]:
    """For each row of Nemotron files or datasets its persona, or None where `reading` says how the row ended.

    Raises SourceError for a problem of the whole source.
    """
    rows = chain_rows(sources, lambda source: open_source(source, required=REQUIRED, where=source.where))
    return read_each(rows, reading, lambda row, source: parse_row(row, source.language))


def parse_row(row: SourceRow, language: Language | None = None) -> Persona:
    """One persona; Unwanted for a row in a language without prompts, BadRow for a row without id or text, with an
    impossible age or a list that is none."""
    value: Mapping[str, Any] = row.value
    source_key, persona = text_of(value["uuid"]), text_of(first_given(value, ("persona", "concise_persona")))
    if source_key is None or persona is None:
        raise BadRow(f"expected a uuid and a persona text, found uuid {value['uuid']!r}, persona {persona!r}"[:200])
    age, sex, city = parse_age(value["age"]), sex_of(value["sex"]), text_of(value.get("city"))
    occupation, detailed = text_of(value["occupation"]), text_of(value.get("detailed_occupation"))
    education, marital_status = text_of(value.get("education_level")), text_of(value.get("marital_status"))
    state = text_of(first_given(value, ("state", "region")))
    facts = write_facts(
        age=age,
        sex=sex,
        marital_status=marital_status,
        education=education,
        occupation=detailed or occupation,
        city=city,
        state=state,
    )
    prose = join_sentences([persona, *(text_of(value.get(name)) for name in PROSE)])
    description = check_length(join_sentences([facts, prose]))
    return Persona(
        source_key=source_key,
        language=row_language(prose, language),
        description=description,
        raw=row.json(),
        name=_name(value) if "last_name" in value else None,
        age=age,
        age_bucket=bucket_of_age(value["age"]),
        sex=sex,
        occupation=detailed or occupation,
        occupation_group=_group(occupation, detailed),
        education_level=education,
        marital_status=marital_status,
        race_ethnicity=text_of(first_given(value, ("ethnic_background", "race_ethnicity"))),
        city=city,
        state=state,
        country=text_of(value.get("country")),
        big_five=big_five_of(value),
        hobbies=parse_list(value.get(HOBBIES), HOBBIES),
    )


IDENTITY = (
    *("first_name", "middle_name", "last_name", "age", "sex", "marital_status", "ethnic_background", "race_ethnicity"),
    *("city", "state", "region", "zipcode", "country"),
)


def inspire_by_row(value: Mapping[str, Any]) -> str:
    """Occupation, skills and hobbies of a row; the texts of the source tell them with names and origins, so one of them
    stands for a row that has none."""
    occupation = text_of(value.get("detailed_occupation")) or text_of(value.get("occupation"))
    facts = {
        "occupation": spell_out(occupation) if occupation else None,
        "skills": parse_list(value.get(SKILLS), SKILLS),
        "hobbies": parse_list(value.get(HOBBIES), HOBBIES),
    }
    if not facts["skills"] and not facts["hobbies"]:
        facts["short_persona"] = text_of(first_given(value, ("persona", "concise_persona")))
    return verbalise_object(drop_identity({**{name: value.get(name) for name in IDENTITY}, **facts}))


def _group(occupation: str | None, detailed: str | None) -> str | None:
    """The group of the occupation; of the detailed one where the first fits none."""
    group = occupation_group(occupation)
    return occupation_group(detailed) or group if group in (None, "other") else group


def _name(value: Mapping[str, Any]) -> str | None:
    parts = [text_of(value.get(name)) for name in ("first_name", "middle_name", "last_name")]
    return " ".join(part for part in parts if part) or None
