"""Where an expanded PersonaMem persona says what: models wrote these objects, and no two use the same keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tasks.personas.texts import text_of
from tasks.personas.verbalise import words

SPEAKING_STYLE = ("speaking_style", "speaking_style_with_chatbot", "speaking_style_to_chatbot")
RACE = ("race_ethnicity", "race", "ethnicity", "ethnic_background")
HOBBIES = ("hobbies", "hobbies_interests", "hobbies_and_interests", "interests", "leisure_activities")
OCCUPATION = ("occupation", "career", "work", "job", "profession", "employment")
OCCUPATION_TITLE = ("job_title", "title", "current_position", "current_role", "position", "role", "occupation", "rank")
EDUCATION = ("education", "education_level", "highest_degree", "degree")
DEGREE = ("highest_degree", "degree", "level", "education_level", "graduate_degree", "undergraduate_degree")
SEX = ("gender", "sex", "gender_identity")
AGE = ("age", "age_years")
OF_THE_PERSONA = ("demographic", "basic", "personal_info", "personal_details", "profile", "identity")
"""In the names of objects that hold the persona's own facts; a pet has an age too."""
MARRIAGE = ("marital_status", "relationship_status")
LOCATION = ("location", "current_location", "residence", "current_residence", "home")
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
    for scope in _scopes(persona):
        for name in names:
            if scope.get(name) not in (None, "", [], {}):
                return scope[name]
    return None


def title_of(persona: Mapping[str, Any]) -> str | None:
    """The occupation as one short text: of an object its title, else its first text."""
    return _one_of(_top(persona, OCCUPATION), OCCUPATION_TITLE)


def degree_of(persona: Mapping[str, Any]) -> str | None:
    """The education as one short text: of an object its highest degree, else its first text."""
    return _one_of(_top(persona, EDUCATION), DEGREE)


def speaking_style_of(persona: Mapping[str, Any]) -> str | None:
    """The speaking style in words, whichever of its keys is used."""
    return words(find(persona, SPEAKING_STYLE)) or None


def hobbies_of(persona: Mapping[str, Any]) -> tuple[str, ...]:
    """Hobbies as a list; a text counts as one entry."""
    found = find(persona, HOBBIES)
    items = found if isinstance(found, list) else [found]
    return tuple(text for item in items if (text := words(item)))


def age_of(persona: Mapping[str, Any]) -> Any:
    """The persona's own age as it is told, at the top or among its facts; None when it is not."""
    facts = [
        inner
        for key, inner in persona.items()
        if isinstance(inner, Mapping) and any(part in key.lower() for part in OF_THE_PERSONA)
    ]
    return next((age for scope in (persona, *facts) if (age := _top(scope, AGE)) is not None), None)


def place_of(persona: Mapping[str, Any], part: str) -> str | None:
    """`city`, `state` or `country`, at the top or within a location; None where it is not told apart."""
    locations = [persona[name] for name in LOCATION if isinstance(persona.get(name), Mapping)]
    return next((text for scope in (persona, *locations) if (text := text_of(scope.get(part)))), None)


def _top(persona: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """As `find`, but at the top only: a spouse has an occupation too."""
    return next((persona[name] for name in names if persona.get(name) not in (None, "", [], {})), None)


def _one_of(value: Any, names: tuple[str, ...]) -> str | None:
    if isinstance(value, list):
        value = value[0]
    if not isinstance(value, Mapping):
        return text_of(value)
    named = next((text for name in names if (text := text_of(value.get(name)))), None)
    return named or next((text for inner in value.values() if (text := text_of(inner))), None)


def _scopes(persona: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
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
    return any(map(OTHERS.fullmatch, re.findall("[a-z]+", key.lower())))
