"""Source personas as one paragraph, without a model: what is encoded, and what models are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.foundation.sources.values import one_line
from tasks.foundation.texts.contact_data import hide

_NOUNS = {"Male": "man", "Female": "woman"}
_SAID = {
    "not_in_workforce": "not in the workforce",
    "never_married": "never married",
    "married_present": "married",
    "9th_12th_no_diploma": "9th to 12th grade without a diploma",
    "less_than_9th": "less than 9th grade",
    "bachelors": "bachelor's degree",
    "associates": "associate degree",
    "graduate": "graduate degree",
}
_KEYS = {
    "race_ethnicity": "race or ethnicity",
    "hobbies_interests": "hobbies and interests",
    "speaking_style_with_chatbot": "speaking style",
    "speaking_style_to_chatbot": "speaking style",
}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")
_CONTACT = frozenset(
    {
        *(
            "address",
            "addresses",
            "street",
            "zip",
            "zipcode",
            "postcode",
            "phone",
            "telephone",
            "email",
            "ssn",
        ),
        *("passport", "地址", "住址", "电话", "手机", "邮箱"),
    }
)
"""Words in the names of fields that tell how to reach somebody."""
_ABBREVIATION = re.compile(r"\b\w\.\w\.$")
FIRST_PREFERENCE_KEY = "stereotypical_preferences"
"""PersonaMem: this key and every later one hold preferences, which stay out of the description."""
PREFERENCE_KEYS = (FIRST_PREFERENCE_KEY, "anti_stereotypical_preferences", "neutral_preferences")


def write_facts(
    *,
    age: int | None,
    sex: str | None,
    marital_status: str | None,
    education: str | None,
    occupation: str | None,
    city: str | None,
    state: str | None,
) -> str:
    """One English sentence of the facts that are given (`sex` as `sexes.sex_of` spells it); empty when none is.

    >>> write_facts(age=72, sex="Male", marital_status="widowed", education="high_school",
    ...                occupation="not_in_workforce", city="Wickliffe", state="OH")
    'A 72-year-old man, widowed, education: high school, not in the workforce, living in Wickliffe, OH.'
    """
    place = ", ".join(part for part in (city, state) if part)
    facts = [
        spell_out(marital_status) if marital_status else None,
        f"education: {spell_out(education)}" if education else None,
        _describe_work(occupation) if occupation else None,
        f"living in {place}" if place else None,
    ]
    given = [fact for fact in facts if fact]
    if age is None and not sex and not given:
        return ""
    return ", ".join([_describe_person(age, sex), *given]) + "."


def spell_out(code: str) -> str:
    """A code of the sources as words: `married_present` → `married`, others with spaces for underscores."""
    return _SAID.get(code, code.replace("_", " "))


def join_sentences(parts: Sequence[str | None]) -> str:
    """The given parts (on one line each) as sentences, ended by a full stop unless they end a sentence themselves."""
    return " ".join(part if part[-1] in ".!?…。！？" else f"{part}." for part in parts if part)


def verbalise_object(persona: Mapping[str, Any]) -> str:
    """An object of persona facts as a paragraph: every key in order, unknown ones too, without preferences and without
    what reaches somebody: fields of it wherever they stand, and in other texts what has its form.

    `short_persona` becomes a sentence of its own; everything else reads "Label: value.".
    """
    parts: list[str | None] = []
    for key, value in persona.items():
        if key == FIRST_PREFERENCE_KEY:
            break
        if key in PREFERENCE_KEYS or is_contact(key):
            continue
        text = hide(put_in_words(_without_contact(value)))[0]
        parts.append(
            _capitalise(text)
            if key == "short_persona"
            else f"{_capitalise(_name_of_key(key))}: {text}"
            if text
            else None
        )
    return join_sentences(parts)


def is_contact(key: str) -> bool:
    """Whether a field's name says that it tells how to reach somebody, or what nobody else is to know."""
    words = words_of(key)
    return bool(_CONTACT.intersection(words)) or "sensitive information" in " ".join(words)


def words_of(key: str) -> list[str]:
    """The words of a field's name, in whatever way they are joined.

    >>> words_of("currentResidence"), words_of("hobbies_and_interests"), words_of("ZIPCode")
    (['current', 'residence'], ['hobbies', 'and', 'interests'], ['zip', 'code'])
    """
    return [word.lower() for word in _WORD.findall(key)]


def _without_contact(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_contact(inner) for key, inner in value.items() if not is_contact(key)}
    return [_without_contact(inner) for inner in value] if isinstance(value, list) else value


def put_in_words(value: Any) -> str:
    """Any JSON value as words: lists with commas, objects as "key: value" with semicolons; empty for nothing.

    What is within an object's object stands in brackets, so that a spouse's age is not taken for the persona's.

    >>> put_in_words({"title": "pilot", "spouse": {"name": "Jo", "age": 36}})
    'title: pilot; spouse (name: Jo; age: 36)'
    """
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        if len(value) == 1 and "persona" in value:
            return put_in_words(value["persona"])
        pairs = [(key, inner, put_in_words(inner)) for key, inner in value.items()]
        return "; ".join(
            f"{_name_of_key(key)} ({text})" if isinstance(inner, Mapping) else f"{_name_of_key(key)}: {text}"
            for key, inner, text in pairs
            if text
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        texts = [
            f"({text})" if isinstance(inner, Mapping) else text for inner in value if (text := put_in_words(inner))
        ]
        return ", ".join(texts)
    text = one_line(str(value))
    return text if _ABBREVIATION.search(text) else text.rstrip(".")


def _describe_person(age: int | None, sex: str | None) -> str:
    noun = _NOUNS.get(sex or "", "person")
    adjective = f"{spell_out(sex).lower()} " if sex and noun == "person" else ""
    if age is None:
        return f"A {adjective}{noun}"
    article = "An" if age in (8, 11, 18) or 80 <= age <= 89 else "A"
    return f"{article} {age}-year-old {adjective}{noun}"


def _describe_work(occupation: str) -> str:
    return spell_out(occupation) if occupation == "not_in_workforce" else f"occupation: {spell_out(occupation)}"


def _name_of_key(key: str) -> str:
    return _KEYS.get(key) or one_line(
        " ".join(words_of(key)) if key.isidentifier() and not key.islower() else key.replace("_", " ")
    )


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]
