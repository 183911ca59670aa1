"""What a persona inspires with does not say who they are: neither in the sample nor in any made-up row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.personas.characters import draw_brief
from tasks.personas.inspirations import Inspiration
from tasks.personas.people import draw_people
from tasks.personas.prompts import DESIGN, design_inputs
from tasks.personas.readers import inspire
from tasks.personas.readers.identity import drop_identity
from tasks.personas.task import STAGE
from tests.unit.source_stages import FakeContext, rows_of

IDENTITY = (
    "name",
    "age",
    "gender",
    "sexual_orientation",
    "race_ethnicity",
    "nationality",
    "birthplace",
    "marital_status",
)
VALUES = {
    "name": "Oda Qvarn",
    "age": 77,
    "gender": "Female",
    "sexual_orientation": "bisexual",
    "race_ethnicity": "Sami",
    "nationality": "Norwegian",
    "birthplace": "Tromso, Norway",
    "marital_status": "widowed",
    "location": {"city": "St. Louis", "state": "MO"},
}
SAID = (
    "Oda",
    "Qvarn",
    "77",
    "Female",
    "bisexual",
    "Sami",
    "Norwegian",
    "Tromso",
    "Norway",
    "widowed",
    "St. Louis",
    "MO",
)
plain = st.sampled_from(["chess", "calm and dry", "a baker of rye bread", "two cats", "observes mornings"])
leaking = st.builds("{} {} {}".format, plain, st.sampled_from(SAID), plain)
leaves = st.one_of(plain, leaking, st.lists(st.one_of(plain, leaking), max_size=3))
objects = st.dictionaries(st.sampled_from(["habits", "work", "values", "bio", "spouse"]), leaves, max_size=4)


def _says(text: str, value: str) -> bool:
    flags = re.IGNORECASE if len(value) > 3 else 0
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, flags) is not None


@given(objects, objects)
def test_no_value_of_identity_stays_at_any_depth(top: dict[str, Any], within: dict[str, Any]) -> None:
    told = {
        **VALUES,
        **top,
        "demographics": {**within, "age": 77},
        "partner": {"name": "Pal Dahl", "hobbies": ["sailing"]},
    }
    text = inspire("personamem", json.dumps({"expanded_persona": json.dumps(told)}), "unused")
    assert not [value for value in (*SAID, "Pal", "Dahl") if _says(text, value)]
    assert "sailing" in text
    for value in [*top.values(), *within.values()]:
        for leaf in value if isinstance(value, list) else [value]:
            kept = not any(_says(leaf, said) for said in SAID)
            assert (leaf in text) or not kept, "nothing else is lost"


def test_fields_are_known_by_their_names_and_not_by_parts_of_words() -> None:
    kept = {"state_of_mind": "calm", "languages": ["Bokmal"], "manager_style": "strict", "usage": "daily"}
    assert (
        drop_identity({**kept, "current_city": "Oslo", "Full Name": "Al", "home_country": "Peru", "dob": "1950"})
        == kept
    )


@given(st.sampled_from(["IN", "OR", "ME"]))
def test_a_short_code_takes_no_word_with_it(state: str) -> None:
    told = {"state": state, "hobbies": ["reading in bed or on trains", "takes me time"], "club": f"runs for {state}"}
    assert drop_identity(told) == {"hobbies": told["hobbies"]}


def test_chinese_values_are_found_within_a_text() -> None:
    assert drop_identity({"name": "王芳", "bio": "大家都叫王芳大姐", "hobbies": "钓鱼"}) == {"hobbies": "钓鱼"}


def test_a_nemotron_row_inspires_with_what_it_does() -> None:
    row = {
        "uuid": "u1",
        "persona": "Ada of Dover keeps bees",
        "cultural_background": "Ada grew up in Delaware.",
        "skills_and_expertise_list": "['physics', 'Dover history']",
        "hobbies_and_interests_list": "['swimming', 'bees']",
        "sex": "Female",
        "age": 41,
        "marital_status": "never_married",
        "occupation": "secondary_school_teacher",
        "city": "Dover",
        "state": "DE",
        "country": "USA",
    }
    text = inspire("nemotron", json.dumps(row), "unused")
    assert text == "Occupation: secondary school teacher. Skills: physics. Hobbies: swimming, bees."
    bare = {key: value for key, value in row.items() if not key.endswith("_list")} | {"persona": "keeps bees"}
    assert inspire("nemotron", json.dumps(bare), "unused") == "Occupation: secondary school teacher. Keeps bees."


def test_a_source_without_fields_inspires_as_it_is() -> None:
    assert inspire("mapped", "{}", "An old angler, 70, of Hull.") == "An old angler, 70, of Hull."


def test_no_sample_persona_inspires_with_who_they_are() -> None:
    context = FakeContext(STAGE)
    candidates = rows_of(STAGE.prepare(context).rows["persona_candidates"])
    readers = {source.pool: source.reader for source in context.settings.personas.sources}
    n = 0
    for one in candidates:
        text = inspire(readers[one.pool], one.raw, one.description)  # type: ignore[attr-defined]
        assert text
        for value in _identity_of(one):
            n += 1
            assert not _says(text, value), (value, text)
    assert n > 4 * len(candidates)


def _identity_of(candidate: Any) -> Iterator[str]:
    for name in ("name", "age", "sex", "race_ethnicity", "city", "state", "country", "marital_status"):
        value = getattr(candidate, name)
        if value is not None:
            yield from ([*str(value).split()] if name == "name" else [str(value)])


@pytest.mark.parametrize(("language", "one"), [("en", "one individual"), ("zh", "只写一个人")])
@pytest.mark.parametrize("text", ["A group of children", "a team of volunteer firefighters", ""])
def test_of_a_group_or_nobody_one_person_is_asked_for(language: Any, one: str, text: str) -> None:
    person = draw_people(language, 1, 3)[0]
    brief = draw_brief(language, 0, person, Inspiration(text, "pool"), 3)
    system, user = DESIGN.render(language, design_inputs(brief), FakeContext(STAGE).settings.text_limits)
    assert one in system.content and ("group" in system.content or "一群人" in system.content)
    assert person.name in user.content and person.origin in user.content
    assert text in user.content


def test_every_attribute_is_told_with_what_it_means() -> None:
    for language, meaning in (("en", "protects others from harm"), ("zh", "护着别人，不让人受伤害")):
        briefs: list[Mapping[str, Any]] = []
        for number, person in enumerate(draw_people(language, 40, 1)):  # type: ignore[arg-type]
            brief = draw_brief(language, number, person, Inspiration("x", "y"), 1)  # type: ignore[arg-type]
            briefs.append({"care": "care" in brief.moral_values, "shown": design_inputs(brief).moral_values})
        assert any(brief["care"] for brief in briefs)
        assert all((meaning in brief["shown"]) == brief["care"] for brief in briefs)
