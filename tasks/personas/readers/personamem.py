"""PersonaMem-v2: one row a *query*, so personas are the distinct `persona_id`s.

`expanded_persona` is a JSON object written by a model, with keys that vary; topics come from all rows of a
persona, its length bucket from the longest of its 128k histories.

No two of these objects use the same keys; the second half of the module knows where one says what.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from tasks.foundation.ids import canonical_json, digest
from tasks.foundation.settings.sections import PersonaSource
from tasks.foundation.sources import BadRow, open_source
from tasks.foundation.sources.literals import parse_literal, parse_object
from tasks.foundation.sources.values import refuse_other, row_language
from tasks.foundation.tables.types import Language
from tasks.personas.readers.identity import drop_identity
from tasks.personas.readers.occupations import occupation_group
from tasks.personas.readers.reading import Persona, Reading, chain_rows, check_length, first_given
from tasks.personas.readers.states import US_STATES, countries
from tasks.personas.readers.values import age_or_none, bucket_of_age, sex_of, text_of
from tasks.personas.readers.verbalise import put_in_words, verbalise_object, words_of

REQUIRED = ("persona_id", "expanded_persona")
TOPIC = "topic_preference"
HISTORY_TOKENS = "total_tokens_in_chat_history_128k"
_COUNT = re.compile(r"[0-9]{1,12}(?:\.0)?")


@dataclass
class _Gathered:
    """What the rows of one persona say so far. `versions` has the persona in each way that its rows tell it; `least` is
    the least row and its version, which stands whatever the order of rows."""

    content: str
    versions: dict[str, Persona]
    least: tuple[str, str]
    topics: Counter[str] = field(default_factory=Counter)
    history_tokens: int | None = None


def read_personamem(sources: Sequence[PersonaSource], reading: Reading) -> Iterator[Persona | None]:
    """None for each row of PersonaMem files or splits, then their distinct personas, in order of their first good row.

    A persona's further rows count as filtered (`further_row`). Another `expanded_persona` under its id is a bad
    row: the first one stands; all else does not depend on the order of rows. Raises SourceError for a problem of the
    whole source.
    """
    gathered: dict[str, _Gathered] = {}
    rows = chain_rows(sources, lambda source: open_source(source, required=REQUIRED, where=source.where))
    for source, row in rows:
        language = source.language
        reading.parse(row, lambda row, language=language: _gather(row.value, gathered, reading, language))  # type: ignore[misc]
        yield None
    yield from _finished(list(gathered.values()))


def parse_persona(value: Mapping[str, Any], language: Language | None = None) -> Persona:
    """The persona of one row, in the `language` that its source names; Unwanted for one without prompts, BadRow for a
    missing id, an object that is none, or an impossible age."""
    source_key = text_of(value.get("persona_id"))
    if source_key is None:
        raise BadRow(f"expected a persona_id, found {value.get('persona_id')!r}")
    persona = _read_object(value)
    description = check_length(verbalise_object(persona))
    if not description:
        raise BadRow("expected facts in expanded_persona, found preferences only")
    occupation = title_of(persona)
    return Persona(
        source_key=source_key,
        language=row_language(description, language),
        description=description,
        raw=canonical_json(value),
        name=text_of(persona.get("name")),
        age=age_or_none(age_of(persona)),
        age_bucket=bucket_of_age(age_of(persona)),
        sex=sex_of(find(persona, SEX)),
        occupation=occupation,
        occupation_group=occupation_group(occupation),
        education_level=degree_of(persona),
        marital_status=text_of(find(persona, MARRIAGE)),
        race_ethnicity=put_in_words(find(persona, RACE)) or None,
        speaking_style=speaking_style_of(persona),
        hobbies=hobbies_of(persona),
        city=place_of(persona, "city"),
        state=place_of(persona, "state"),
        country=place_of(persona, "country"),
    )


def inspire_by_object(value: Mapping[str, Any]) -> str:
    """What the object of a row tells, without who the persona is."""
    return verbalise_object(drop_identity(_read_object(value)))


def _read_object(value: Mapping[str, Any]) -> dict[str, Any]:
    """The persona of a row, its `short_persona` first, as the object has it or else the row."""
    persona = parse_object(value.get("expanded_persona"), "expanded_persona")
    rest = {key: inner for key, inner in persona.items() if key != "short_persona"}
    own = _short(persona.get("short_persona"))
    return {"short_persona": own if put_in_words(own) else _short(value.get("short_persona")), **rest}


def _gather(
    value: Mapping[str, Any], gathered: dict[str, _Gathered], reading: Reading, language: Language | None
) -> None:
    content = digest(value.get("expanded_persona"))
    version = digest(json.dumps([value.get("short_persona"), value.get("expanded_persona")]))  # keys in their order
    known = gathered.get(text_of(value.get("persona_id")) or "")
    if known is None:
        persona = parse_persona(value, language)
        refuse_other(persona.language, reading.languages)
        known = gathered[persona.source_key] = _Gathered(content, {version: persona}, (persona.raw, version))
    elif known.content != content:
        raise BadRow(f"expected one persona for each persona_id, found {value['persona_id']!r} with another one")
    else:
        if version not in known.versions:
            known.versions[version] = parse_persona(value, language)
        reading.filtered["further_row"] += 1
        known.least = min(known.least, (canonical_json(value), version))
    if topic := text_of(value.get(TOPIC)):
        known.topics[topic] += 1
    if _COUNT.fullmatch(tokens := str(value.get(HISTORY_TOKENS))):
        known.history_tokens = max(int(float(tokens)), known.history_tokens or 0)


def _finished(gathered: list[_Gathered]) -> list[Persona]:
    buckets = tercile_names([persona.history_tokens for persona in gathered])
    return [
        replace(
            each.versions[each.least[1]],
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


SPEAKING_STYLE = ("speaking_style", "speaking_style_with_chatbot", "speaking_style_to_chatbot")
RACE = ("race_ethnicity", "race", "ethnicity", "ethnic_background")
HOBBIES = ("hobbies", "hobbies_interests", "interests", "leisure_activities", "pastimes", "hobby")
OCCUPATION = ("occupation", "career", "work", "job", "profession", "employment", "occupation_title", "job_title")
OCCUPATION_TITLE = ("job_title", "title", "position", "role", "occupation", "rank", "profession", "job")
EDUCATION = ("education", "education_level", "highest_degree", "degree")
DEGREE = ("highest_degree", "degree", "level", "education_level", "graduate_degree", "undergraduate_degree")
SEX = ("gender", "sex", "gender_identity")
AGE = ("age", "age_years")
OF_THE_PERSONA = ("demographic", "basic", "personal_info", "personal_details", "profile", "identity")
"""In the names of objects that hold the persona's own facts; a pet has an age too."""
MARRIAGE = ("marital_status", "relationship_status")
QUALIFIERS = frozenset({"current", "currently", "present", "primary", "main", "and", "of", "the"})
"""Words that a name may have beside those that say what a field is: `current_occupation`, `level_of_education`."""
LOCATION = ("location", "residence", "home", "place_of_residence", "city_of_residence", "lives_in", "based_in")
DEPTH = 2
"""Levels of nested objects that are searched for a key."""
OTHERS = re.compile(
    "(?:spouse|partner|husband|wife|(?:boy|girl)friend|fiancee?|ex|child|children|kid|parent|relative|sibling|twin"
    "|(?:step|grand)?(?:son|daughter|mother|father|parent|children|child)|mom|mum|dad|brother|sister|aunt|uncle|niece"
    "|nephew|cousin|friend|roommate|neighbou?r|colleague|coworker|boss|mentor|pet|dog|cat)s?"
)
"""Words in the names of objects that speak of somebody else: a husband has a gender, and a dog an age."""


def find(persona: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The value of the first of `names` that is given at the top, else in an object within; None when none is."""
    found = (given(scope, names) for scope in _objects_within(persona))
    return next((value for value in found if value is not None), None)


def given(scope: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The first value that is given under one of some names, in whatever way their words are joined, ordered and
    qualified; exact names go first. None when none is.

    >>> given({"currentOccupation": "pilot"}, ("occupation",)), given({"interests_hobbies": ["x"]}, HOBBIES)
    ('pilot', ['x'])
    """
    found = first_given(scope, names)
    if found is not None:
        return found
    meant = {_meant(key): value for key, value in reversed(list(scope.items())) if value not in (None, "", [], {})}
    return next((meant[name] for name in map(_meant, names) if name in meant), None)


@cache
def _meant(key: str) -> frozenset[str]:
    return frozenset(words_of(key)) - QUALIFIERS


def title_of(persona: Mapping[str, Any]) -> str | None:
    """The occupation, told at the top or among the persona's facts (a spouse has one too), as one short text: of an
    object its title, else its first text."""
    return _one_of(_own(persona, OCCUPATION), OCCUPATION_TITLE)


def degree_of(persona: Mapping[str, Any]) -> str | None:
    """The education as one short text: of an object its highest degree, else its first text."""
    return _one_of(_own(persona, EDUCATION), DEGREE)


def speaking_style_of(persona: Mapping[str, Any]) -> str | None:
    """The speaking style in words, whichever of its keys is used."""
    return put_in_words(find(persona, SPEAKING_STYLE)) or None


def hobbies_of(persona: Mapping[str, Any]) -> tuple[str, ...]:
    """Hobbies as a list; a text counts as one entry."""
    found = find(persona, HOBBIES)
    items = found if isinstance(found, list) else [found]
    return tuple(text for item in items if (text := put_in_words(item)))


def age_of(persona: Mapping[str, Any]) -> Any:
    """The persona's own age as it is told, at the top or among its facts; None when it is not."""
    return _own(persona, AGE)


def _own(persona: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((value for scope in _own_scopes(persona) if (value := given(scope, names)) is not None), None)


def _own_scopes(persona: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The object itself, then those in it that hold the persona's own facts."""
    return [
        persona,
        *(
            inner
            for key, inner in persona.items()
            if isinstance(inner, Mapping) and any(part in "_".join(words_of(key)) for part in OF_THE_PERSONA)
        ),
    ]


def place_of(persona: Mapping[str, Any], part: str) -> str | None:
    """`city`, `state` or `country`, at the top or within a location, which may be one text; None where it is not told
    apart."""
    scopes = _own_scopes(persona)
    locations = [found for scope in scopes if (found := given(scope, LOCATION)) is not None]
    objects = [each for each in locations if isinstance(each, Mapping)]
    told = next((text for scope in (*scopes, *objects) if (text := text_of(given(scope, (part,))))), None)
    texts = [text for each in locations if (text := text_of(each))]
    return told or next((place for text in texts if (place := split_place(text).get(part))), None)


def split_place(text: str) -> dict[str, str]:
    """The city, state and country that one text names, as far as they are sure.

    >>> split_place("Querétaro, Querétaro, Mexico"), split_place("12 Elm St, Austin, TX"), split_place("a quiet flat")
    ({'city': 'Querétaro', 'state': 'Querétaro', 'country': 'Mexico'}, {'city': 'Austin', 'state': 'TX'}, {})
    >>> split_place("Toronto, Ontario"), split_place("Turin, Italy")
    ({'city': 'Toronto'}, {'city': 'Turin', 'country': 'Italy'})
    """
    parts = [part.strip(" .") for part in re.sub(r"\([^)]*\)", "", text).split(",")]
    names = [part for part in parts if part and not re.search(r"\d", part)]
    if not 1 < len(names) <= 3 or not all(name[0].isupper() and len(name.split()) <= 4 for name in names):
        return {}
    city, *rest = names
    if len(rest) == 2:
        return {"city": city, "state": rest[0], "country": rest[1]}
    (last,) = rest
    if last.casefold() in US_STATES:
        return {"city": city, "state": last}
    return {"city": city, "country": last} if last.casefold() in countries() else {"city": city}


def _one_of(value: Any, names: tuple[str, ...]) -> str | None:
    if isinstance(value, list):
        value = value[0]
    if not isinstance(value, Mapping):
        return text_of(value)
    named = next((text for name in names if (text := text_of(value.get(name)))), None)
    return named or next((text for inner in value.values() if (text := text_of(inner))), None)


def _objects_within(persona: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The object, then the objects within it, level by level; not those of others."""
    level: list[Mapping[str, Any]] = [persona]
    for _ in range(DEPTH):
        yield from level
        level = [
            inner
            for scope in level
            for key, inner in scope.items()
            if isinstance(inner, Mapping) and not _is_of_others(key)
        ]


def _is_of_others(key: str) -> bool:
    """Whether an object's name says that it speaks of somebody else (`late_wife`, `pets`)."""
    return any(map(OTHERS.fullmatch, words_of(key)))


NAMES = ("short", "medium", "long")


def tercile_names(values: Sequence[int | None]) -> list[str | None]:
    """The tercile of each value among all that are given; equal values share one, None stays None.

    The bounds are the values at a third and two thirds of the sorted ones.

    >>> tercile_names([10, 30, 20, None])
    ['short', 'long', 'medium', None]
    """
    known = sorted(value for value in values if value is not None)
    if not known:
        return [None for _ in values]
    lower, upper = (known[-(-len(known) * part // 3) - 1] for part in (1, 2))
    return [None if value is None else NAMES[(value > lower) + (value > upper)] for value in values]
