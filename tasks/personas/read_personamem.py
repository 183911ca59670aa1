"""PersonaMem-v2: one row a *query*, so personas are the distinct `persona_id`s.

`expanded_persona` is a JSON object written by a model, with keys that vary; topics come from all rows of a
persona, its length bucket from the longest of its 128k histories.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tasks.foundation.ids import canonical_json, digest
from tasks.foundation.settings.sections import PersonaSource
from tasks.foundation.sources import BadRow, Problem, SourceRow, Unwanted, open_source
from tasks.foundation.sources.language import row_language
from tasks.foundation.tables.types import Language
from tasks.personas.ages import age_told, bucket_told
from tasks.personas.buckets import tercile_names
from tasks.personas.literals import parse_literal, parse_object
from tasks.personas.occupations import occupation_group
from tasks.personas.persona_keys import (
    MARRIAGE,
    RACE,
    SEX,
    age_of,
    degree_of,
    find,
    hobbies_of,
    place_of,
    speaking_style_of,
    title_of,
)
from tasks.personas.reading import Persona, Reading, checked_description
from tasks.personas.sexes import sex_of
from tasks.personas.texts import text_of
from tasks.personas.verbalise import verbalise_object, words

REQUIRED = ("persona_id", "expanded_persona")
TOPIC = "topic_preference"
HISTORY_TOKENS = "total_tokens_in_chat_history_128k"
_COUNT = re.compile(r"[0-9]{1,12}(?:\.0)?")


@dataclass
class _Gathered:
    """What the rows of one persona say so far. `told` has the persona in each way that its rows tell it; `least` is the
    least row and its way, which stands whatever the order of rows."""

    content: str
    told: dict[str, Persona]
    least: tuple[str, str]
    topics: Counter[str] = field(default_factory=Counter)
    history_tokens: int | None = None


def read_personamem(source: PersonaSource, reading: Reading) -> Iterator[Persona | None]:
    """None for each row of a PersonaMem file or dataset, then its distinct personas, in order of their first good row.

    A persona's further rows count as filtered (`further_row`). Another `expanded_persona` under its id is a bad
    row: the first one stands; all else does not depend on the order of rows. Raises SourceError for a problem of the
    whole source.
    """
    gathered: dict[str, _Gathered] = {}
    for row in open_source(source, required=REQUIRED, where=source.where):
        reading.n_in += 1
        _gather(row, gathered, reading, source.language)
        yield None
    yield from _finished(list(gathered.values()))


def parse_persona(value: Mapping[str, Any], language: Language | None = None) -> Persona:
    """The persona of one row, in the `language` that its source names; Unwanted for one without prompts, BadRow for a
    missing id, an object that is none, or an impossible age."""
    source_key = text_of(value.get("persona_id"))
    if source_key is None:
        raise BadRow(f"expected a persona_id, found {value.get('persona_id')!r}")
    persona = parse_object(value.get("expanded_persona"), "expanded_persona")
    rest = {key: inner for key, inner in persona.items() if key != "short_persona"}
    own = _short(persona.get("short_persona"))
    persona = {"short_persona": own if words(own) else _short(value.get("short_persona")), **rest}
    description = checked_description(verbalise_object(persona))
    if not description:
        raise BadRow("expected facts in expanded_persona, found preferences only")
    occupation = title_of(persona)
    return Persona(
        source_key=source_key,
        language=row_language(description, language),
        description=description,
        raw=canonical_json(value),
        name=text_of(persona.get("name")),
        age=age_told(age_of(persona)),
        age_bucket=bucket_told(age_of(persona)),
        sex=sex_of(find(persona, SEX)),
        occupation=occupation,
        occupation_group=occupation_group(occupation),
        education_level=degree_of(persona),
        marital_status=text_of(find(persona, MARRIAGE)),
        race_ethnicity=words(find(persona, RACE)) or None,
        speaking_style=speaking_style_of(persona),
        hobbies=hobbies_of(persona),
        city=place_of(persona, "city"),
        state=place_of(persona, "state"),
        country=place_of(persona, "country"),
    )


def _gather(row: SourceRow, gathered: dict[str, _Gathered], reading: Reading, language: Language | None) -> None:
    if row.problem is not None:
        reading.leave_out(row, row.problem)
        return
    try:
        _take(row.value, gathered, reading, language)
    except BadRow as bad:
        reading.leave_out(row, Problem("schema", bad.reason))
    except Unwanted as unwanted:
        reading.pass_over(row, unwanted)


def _take(
    value: Mapping[str, Any], gathered: dict[str, _Gathered], reading: Reading, language: Language | None
) -> None:
    content = digest(value.get("expanded_persona"))
    told = json.dumps([value.get("short_persona"), value.get("expanded_persona")])  # keys in their order
    telling = digest(told)
    known = gathered.get(text_of(value.get("persona_id")) or "")
    if known is None:
        persona = parse_persona(value, language)
        known = gathered[persona.source_key] = _Gathered(content, {telling: persona}, (persona.raw, telling))
    elif known.content != content:
        raise BadRow(f"expected one persona for each persona_id, found {value['persona_id']!r} with another one")
    else:
        if telling not in known.told:
            known.told[telling] = parse_persona(value, language)
        reading.filtered["further_row"] += 1
        known.least = min(known.least, (canonical_json(value), telling))
    if topic := text_of(value.get(TOPIC)):
        known.topics[topic] += 1
    if _COUNT.fullmatch(tokens := str(value.get(HISTORY_TOKENS))):
        known.history_tokens = max(int(float(tokens)), known.history_tokens or 0)


def _finished(gathered: list[_Gathered]) -> list[Persona]:
    buckets = tercile_names([persona.history_tokens for persona in gathered])
    return [
        replace(
            each.told[each.least[1]],
            raw=each.least[0],
            topic_tags=_by_frequency(each.topics),
            interaction_length_bucket=bucket,
        )
        for each, bucket in zip(gathered, buckets, strict=True)
    ]


def _by_frequency(topics: Counter[str]) -> tuple[str, ...]:
    """Most frequent first, ties by name; the first is the primary topic."""
    return tuple(sorted(topics, key=lambda topic: (-topics[topic], topic)))


def _short(value: Any) -> Any:
    """`short_persona` as the row has it: plain text, or the text of a Python object."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return parse_literal(value, "short_persona")
    return value
