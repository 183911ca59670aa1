"""Any other personas (parquet, jsonl, csv): `mapping` in the source's settings says which column is which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.foundation.errors import ConfigError
from tasks.foundation.ids import digest
from tasks.foundation.settings.sections import PersonaSource
from tasks.foundation.sources import BadRow, SourceRow, open_source
from tasks.foundation.sources.literals import parse_list
from tasks.foundation.sources.values import one_line, row_language, unless_blank
from tasks.foundation.tables.types import Language
from tasks.personas.readers.occupations import occupation_group
from tasks.personas.readers.reading import Persona, Reading, chain_rows, check_length, read_each
from tasks.personas.readers.values import big_five_of, bucket_of_age, parse_age, sex_of, text_of
from tasks.personas.readers.verbalise import join_sentences, put_in_words

TEXTS = (
    "name",
    "sex",
    "occupation",
    "occupation_group",
    "education_level",
    "marital_status",
    "race_ethnicity",
    "city",
    "state",
    "country",
    "speaking_style",
)
MAPPABLE = ("source_key", "description", "language", "age", "big_five", "hobbies", "topic_tags", *TEXTS)


def check_mapping(source: PersonaSource) -> None:
    """ConfigError unless `mapping` names our columns, `description` among them."""
    unknown = sorted(set(source.mapping) - set(MAPPABLE))
    if unknown or "description" not in source.mapping:
        problem = f"found {', '.join(map(repr, unknown))}" if unknown else "'description' is not mapped"
        raise ConfigError(
            f"personas.sources, pool {source.pool!r}: `mapping` goes from our column to theirs; {problem}. "
            f"It must have 'description' and may have {', '.join(MAPPABLE)}."
        )


def read_mapped(sources: Sequence[PersonaSource], reading: Reading) -> Iterator[Persona | None]:
    """For each row of mapped files or datasets its persona, or None where `reading` says how the row ended.

    Raises SourceError when a mapped column is missing from one.
    """
    rows = chain_rows(sources, _open)
    return read_each(rows, reading, lambda row, source: parse_row(row, source.mapping, source.language))


def _open(source: PersonaSource) -> Iterator[SourceRow]:
    check_mapping(source)
    described = source.mapping["description"]
    optional = [column for column in source.mapping.values() if column != described]
    return open_source(source, required=[described], where=source.where, optional=optional)


def parse_row(row: SourceRow, mapping: Mapping[str, str], language: Language | None = None) -> Persona:
    """One persona; without a `source_key` of its own all that the row says is its key. `language` is the source's,
    where the row has none. BadRow for a row that is none, Unwanted for one in a language without prompts."""
    ours: dict[str, Any] = {name: unless_blank(row.value.get(column)) for name, column in mapping.items()}
    description = check_length(join_sentences([put_in_words(ours["description"])]))
    key = ours.get("source_key")
    source_key = digest(row.json()) if key is None else text_of(key)
    if not description or source_key is None:
        raise BadRow(f"expected a description and a key, found {description[:60]!r} and {key!r}")
    texts = {name: text_of(ours.get(name)) for name in TEXTS}
    texts["occupation_group"] = texts["occupation_group"] or occupation_group(texts["occupation"])
    texts["sex"] = sex_of(texts["sex"])
    return Persona(
        source_key=source_key,
        language=row_language(description, ours.get("language"), language),
        description=description,
        raw=row.json(),
        age=parse_age(ours.get("age")),
        age_bucket=bucket_of_age(ours.get("age")),
        big_five=big_five_of({"big_five": ours.get("big_five")}),
        hobbies=_texts(ours.get("hobbies"), mapping.get("hobbies", "")),
        topic_tags=_texts(ours.get("topic_tags"), mapping.get("topic_tags", "")),
        **texts,
    )


def _texts(value: Any, column: str) -> tuple[str, ...]:
    """A list, the text of a list, or plain text as the only entry."""
    if isinstance(value, str) and value.strip() and not value.lstrip().startswith("["):
        return (one_line(value),)
    return parse_list(value, column)
