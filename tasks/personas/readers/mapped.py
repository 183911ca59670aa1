"""Any other personas (parquet, jsonl, csv): `mapping` in the source's settings says which column is which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.foundation.errors import ConfigError
from tasks.foundation.ids import digest
from tasks.foundation.settings.sections import PersonaSource
from tasks.foundation.sources import BadRow, SourceRow, open_source
from tasks.foundation.sources.literals import parse_cell, parse_list
from tasks.foundation.sources.paths import find
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


WORDS_OF_SENTENCE = 4


def check_mapping(source: PersonaSource) -> None:
    """ConfigError unless `mapping` names our columns, `description` among them."""
    unknown = sorted(set(source.mapping) - set(MAPPABLE))
    several = sorted(
        name for name, path in source.mapping.items() if name != "description" and not isinstance(path, str)
    )
    if several:
        raise ConfigError(
            f"personas.sources, pool {source.pool!r}: only a description is put together of several columns, found "
            f"several for {', '.join(several)}. Name one."
        )
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
    described = tuple(_paths(source.mapping["description"]))
    others = [str(path) for name, path in source.mapping.items() if name != "description"]
    optional = [*described[1:], *others] if len(described) > 1 else others
    return open_source(source, required=[described[0]], where=source.where, optional=optional)


def _paths(mapped: str | Sequence[str]) -> Sequence[str]:
    return [mapped] if isinstance(mapped, str) else mapped


def parse_row(row: SourceRow, mapping: Mapping[str, str | list[str]], language: Language | None = None) -> Persona:
    """One persona; without a `source_key` of its own all that the row says is its key. `language` is the source's,
    where the row has none. BadRow for a row that is none, Unwanted for one in a language without prompts."""
    told = [unless_blank(find(row.value, path)) for path in _paths(mapping["description"])]
    ours: dict[str, Any] = {
        name: unless_blank(find(row.value, path)) for name, path in mapping.items() if isinstance(path, str)
    }
    description = check_length(join_sentences([sentence for value in told for sentence in _sentences(value)]))
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
        hobbies=_texts(ours.get("hobbies"), "hobbies"),
        topic_tags=_texts(ours.get("topic_tags"), "topic_tags"),
        **texts,
    )


def _sentences(value: Any) -> list[str]:
    """A list of sentences as they are, whether a list or the text of one; anything else in words."""
    value = parse_cell(value)
    if isinstance(value, list) and all(isinstance(each, str) for each in value) and _are_sentences(value):
        return [text for each in value if (text := one_line(each))]
    return [put_in_words(value)]


def _are_sentences(texts: Sequence[str]) -> bool:
    """Whether most of them end or begin as sentences do, rather than as entries of a list ("choir", "knots")."""
    ended = [text.rstrip()[-1:] in tuple(".!?…。！？") or len(text.split()) >= WORDS_OF_SENTENCE for text in texts]
    return 2 * sum(ended) >= len(ended)


def _texts(value: Any, column: str) -> tuple[str, ...]:
    """A list, the text of a list, or plain text as the only entry."""
    if isinstance(value, str) and value.strip() and not value.lstrip().startswith("["):
        return (one_line(value),)
    return parse_list(value, column)
