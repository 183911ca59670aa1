"""Persona readers on rows in the sources' schemas, and on real ones where they are."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation.errors import ConfigError, SourceError
from tasks.foundation.settings.sections import PersonaSource
from tasks.personas.readers import inspire
from tasks.personas.readers.mapped import MAPPABLE, read_mapped
from tasks.personas.readers.nemotron import read_nemotron
from tasks.personas.readers.occupations import occupation_mapping
from tasks.personas.readers.personamem import read_personamem
from tasks.personas.readers.reading import Persona, Reading
from tests.unit.source_stages import write_jsonl

NEMOTRON: dict[str, Any] = {
    "uuid": "u1",
    "persona": "Ada keeps bees",
    "professional_persona": "Ada teaches physics",
    "hobbies_and_interests": "Ada swims before dawn.",
    "hobbies_and_interests_list": "['swimming', 'bees']",
    "skills_and_expertise_list": "['physics']",
    "sex": "Female",
    "age": 41,
    "marital_status": "never_married",
    "education_level": "graduate",
    "bachelors_field": None,
    "occupation": "secondary_school_teacher",
    "city": "Dover",
    "state": "DE",
    "zipcode": "01234",
    "country": "USA",
}
EXPANDED: dict[str, Any] = {
    "short_persona": {"persona": "A ferry pilot who sings"},
    "name": "Ole Berg",
    "age": 52,
    "gender": "Male",
    "race": "White",
    "work": {"title": "Ferry pilot", "years": 20},
    "degree": "Master mariner",
    "location": {"city": "Bergen", "country": "Norway"},
    "personality": {"traits": ["calm"], "hobbies_interests": ["choir", "knots"]},
    "speaking_style": {"tone": "dry.", "pacing": "slow"},
    "stereotypical_preferences": {"food": "SECRET herring"},
    "anti_stereotypical_preferences": ["SECRET opera"],
    "sensitive_information": "SECRET number",
}


def personamem_row(**changes: Any) -> dict[str, Any]:
    row = {
        "persona_id": 7,
        "short_persona": "A ferry pilot",
        "expanded_persona": json.dumps(EXPANDED),
        "topic_preference": "Travel",
        "total_tokens_in_chat_history_128k": 1000,
    }
    return row | changes


@dataclass
class WholeReading(Reading):
    """A source read to its end, its personas too."""

    personas: list[Persona] = field(default_factory=list)


Reader = Callable[[PersonaSource, Reading], Iterator[Persona | None]]


def read(reader: Reader, path: Path, **source: Any) -> WholeReading:
    reading = WholeReading("p")
    made = reader([PersonaSource(pool="p", reader="nemotron", path=str(path), **source)], reading)
    reading.personas = [persona for persona in made if persona is not None]
    return reading


def nemotron(tmp_path: Path, *rows: Any, **source: Any) -> WholeReading:
    return read(read_nemotron, write_jsonl(tmp_path / "rows.jsonl", rows), **source)


def personamem(tmp_path: Path, *rows: Any) -> WholeReading:
    return read(read_personamem, write_jsonl(tmp_path / "rows.jsonl", rows))


def only(reading: WholeReading) -> Persona:
    (persona,) = reading.personas
    return persona


def test_a_nemotron_row_is_verbalised_facts_first(tmp_path: Path) -> None:
    persona = only(nemotron(tmp_path, NEMOTRON | {"cultural_background": "Her family came by boat"}))
    assert persona.description == (
        "A 41-year-old woman, never married, education: graduate degree, occupation: secondary school teacher, "
        "living in Dover, DE. Ada keeps bees. Ada teaches physics. Ada swims before dawn. Her family came by boat."
    )
    assert persona.hobbies == ("swimming", "bees")
    assert persona.occupation_group == "education_library"
    assert (persona.name, persona.big_five, persona.race_ethnicity) == (None, None, None)
    assert json.loads(persona.raw)["zipcode"] == "01234"


def test_the_extended_set_gives_name_race_big_five_and_the_detailed_occupation(tmp_path: Path) -> None:
    row = {name: value for name, value in NEMOTRON.items() if name not in ("persona", "state")}
    row |= {
        "concise_persona": "A steady carer",
        "first_name": "Inez",
        "middle_name": "",
        "last_name": "Newman",
        "region": "WI",
        "ethnic_background": "white",
        "occupation": "healthcare_support",
        "detailed_occupation": "personal_care_aide",
        **{trait: {"t_score": 50, "label": "average"} for trait in ("openness", "conscientiousness", "extraversion")},
        "agreeableness": "{'t_score': 30, 'label': 'low'}",
        "neuroticism": 61.5,
    }
    persona = only(nemotron(tmp_path, row))
    assert (persona.name, persona.race_ethnicity, persona.state) == ("Inez Newman", "white", "WI")
    assert (persona.occupation, persona.occupation_group) == ("personal_care_aide", "healthcare_support")
    assert persona.big_five is not None
    assert persona.big_five.model_dump() == {
        "openness": "average",
        "conscientiousness": "average",
        "extraversion": "average",
        "agreeableness": "low",
        "neuroticism": "61.5",
    }


@pytest.mark.parametrize("age", [-1, "-1", "999", 121, 999, 30.5, True, [30]])
def test_an_impossible_age_rejects_the_row(tmp_path: Path, age: Any) -> None:
    reading = nemotron(tmp_path, NEMOTRON, NEMOTRON | {"uuid": "u2", "age": age})
    (reject,) = reading.rejects
    assert (
        reject.kind == "schema" and reject.row_key == "rows.jsonl:2" and "expected an age of 0 to 120" in reject.reason
    )


@pytest.mark.parametrize(
    ("age", "years", "bucket"),
    [
        *(
            (age, None, None)
            for age in (None, "", " \t", "N/A", "unknown", "mid-30s", "early forties", "30-39", "34-17")
        ),
        *((age, 41, "35–44") for age in ("41", 41, 41.0, "41 years old", " 41 yrs ", "４１岁")),
        (0, 0, "under 18"),
        *((age, None, "25–34") for age in ("25-34", "25 – 34", "26 to 30 years", "25至34岁")),
        *((age, None, "65+") for age in ("65+", "70 and over", "65岁以上")),
        ("under 18", None, "under 18"),
    ],
)
def test_ages_of_any_spelling_are_read_and_one_that_is_no_number_is_null(
    tmp_path: Path, age: Any, years: int | None, bucket: str | None
) -> None:
    persona = only(nemotron(tmp_path, NEMOTRON | {"age": age}))
    assert (persona.age, persona.age_bucket) == (years, bucket)


@pytest.mark.parametrize("text", ["__import__('os').getcwd()", "['a'", "{'a': 1}", "[" * 5000, "[['a']]"])
def test_a_list_that_is_no_literal_rejects_the_row_and_runs_nothing(tmp_path: Path, text: str) -> None:
    reading = nemotron(tmp_path, NEMOTRON, NEMOTRON | {"uuid": "u2", "hobbies_and_interests_list": text})
    assert [reject.kind for reject in reading.rejects] == ["schema"]


def test_an_id_with_other_content_is_rejected_and_with_the_same_is_a_duplicate(tmp_path: Path) -> None:
    reading = nemotron(tmp_path, NEMOTRON, NEMOTRON, NEMOTRON | {"age": 42}, NEMOTRON)
    assert len(reading.personas) == 1
    assert [reject.row_key for reject in reading.rejects] == ["rows.jsonl:3"]
    persona_id = reading.persona_id("u1")
    assert [(d.row_id, d.duplicate_of, d.method) for d in reading.repeats] == [
        (f"{persona_id}#1", persona_id, "exact"),
        (f"{persona_id}#2", persona_id, "exact"),
    ]


@pytest.mark.parametrize(
    ("written", "sex"),
    [
        *(("male", "Male"), ("FEMALE", "Female"), ("Woman", "Female"), ("non-binary", "Nonbinary"), ("女", "Female")),
        *(("Genderfluid", "Genderfluid"), ("males", "males"), (None, None)),
    ],
)
def test_sex_has_one_spelling_in_every_pool_and_raw_keeps_the_source(
    tmp_path: Path, written: str | None, sex: str | None
) -> None:
    expanded = json.dumps(EXPANDED | {"gender": written}, ensure_ascii=False)
    personas = (
        only(nemotron(tmp_path, NEMOTRON | {"sex": written})),
        only(personamem(tmp_path, personamem_row(expanded_persona=expanded))),
        only(mapped(tmp_path, {"text": "A pilot", "is": written}, {"description": "text", "sex": "is"})),
    )
    assert [persona.sex for persona in personas] == [sex] * 3
    assert all((written or "null") in persona.raw for persona in personas)


def test_every_row_of_a_source_ends_exactly_once(tmp_path: Path) -> None:
    rows = [NEMOTRON, NEMOTRON, "!{", NEMOTRON | {"uuid": "u2", "persona": " "}, NEMOTRON | {"country": "Canada"}]
    reading = nemotron(tmp_path, *rows, where={"country": ["USA", "United States"]})
    assert reading.n_in == 5
    assert (len(reading.personas), len(reading.repeats)) == (1, 1)
    assert (dict(reading.failed), dict(reading.filtered)) == ({"parse": 1, "schema": 1}, {"where": 1})


def test_the_country_as_the_paper_spells_it_selects_nothing_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="'USA'"):
        nemotron(tmp_path, NEMOTRON, where={"country": ["United States"]})


def test_a_file_of_another_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="the columns 'uuid'"):
        nemotron(tmp_path, personamem_row())


def test_a_personamem_persona_is_verbalised_without_its_preferences(tmp_path: Path) -> None:
    persona = only(personamem(tmp_path, personamem_row()))
    assert "SECRET" not in persona.description
    assert persona.description == (
        "A ferry pilot who sings. Name: Ole Berg. Age: 52. Gender: Male. Race: White. Work: title: Ferry pilot; "
        "years: 20. Degree: Master mariner. Location: city: Bergen; country: Norway. Personality: traits: calm; "
        "hobbies and interests: choir, knots. Speaking style: tone: dry; pacing: slow."
    )
    assert (persona.name, persona.age, persona.sex, persona.race_ethnicity) == ("Ole Berg", 52, "Male", "White")
    assert (persona.occupation, persona.education_level) == ("Ferry pilot", "Master mariner")
    assert (persona.city, persona.state, persona.country) == ("Bergen", None, "Norway")
    assert persona.hobbies == ("choir", "knots")
    assert persona.speaking_style == "tone: dry; pacing: slow"


@pytest.mark.parametrize("key", ["speaking_style", "speaking_style_with_chatbot", "speaking_style_to_chatbot"])
def test_each_spelling_of_the_speaking_style_is_found(tmp_path: Path, key: str) -> None:
    persona = {"name": "X", key: "terse"}
    assert only(personamem(tmp_path, personamem_row(expanded_persona=persona))).speaking_style == "terse"


@pytest.mark.parametrize("key", ["race", "race_ethnicity"])
def test_each_spelling_of_race_is_found(tmp_path: Path, key: str) -> None:
    assert only(personamem(tmp_path, personamem_row(expanded_persona={key: "Igbo"}))).race_ethnicity == "Igbo"


@pytest.mark.parametrize("key", ["hobbies", "hobbies_interests", "hobbies_and_interests", "personality"])
def test_each_spelling_of_hobbies_is_found(tmp_path: Path, key: str) -> None:
    value: Any = {"hobbies": ["chess"]} if key == "personality" else ["chess"]
    assert only(personamem(tmp_path, personamem_row(expanded_persona={key: value}))).hobbies == ("chess",)


@pytest.mark.parametrize("key", ["occupation", "career", "work"])
@pytest.mark.parametrize("value", ["Baker", {"job_title": "Baker", "years": 3}, {"trade": "Baker"}])
def test_each_spelling_of_the_occupation_is_found_and_a_spouses_is_not(tmp_path: Path, key: str, value: Any) -> None:
    persona = {"spouse": {"occupation": "Pilot"}, key: value}
    found = only(personamem(tmp_path, personamem_row(expanded_persona=persona)))
    assert (found.occupation, found.occupation_group) == ("Baker", "production")


def test_what_is_said_of_others_is_told_apart(tmp_path: Path) -> None:
    family = {"marital_status": "Married", "spouse": {"name": "Jo", "age": 36}, "children": [{"name": "Al", "age": 3}]}
    expanded = {"name": "X", "race_ethnicity": "Igbo", "family": family, "pet": {"age": 4}}
    persona = only(personamem(tmp_path, personamem_row(expanded_persona=expanded)))
    assert persona.description == (
        "A ferry pilot. Name: X. Race or ethnicity: Igbo. Family: marital status: Married; spouse (name: Jo; age: 36); "
        "children: (name: Al; age: 3). Pet: age: 4."
    )
    assert (persona.age, persona.marital_status) == (None, "Married")


@pytest.mark.parametrize("where", ["demographics", "other_demographics", "basic_info"])
def test_an_age_is_the_personas_own_at_the_top_or_among_its_demographics(tmp_path: Path, where: str) -> None:
    expanded = {"pet": {"age": 4}, where: {"age": 52}}
    assert only(personamem(tmp_path, personamem_row(expanded_persona=expanded))).age == 52


@pytest.mark.parametrize("short", ["A pilot", "{'persona': 'A pilot'}", {"persona": "A pilot"}])
def test_a_short_persona_of_the_row_opens_the_description_where_the_object_has_none(tmp_path: Path, short: Any) -> None:
    row = personamem_row(short_persona=short, expanded_persona={"name": "X"})
    assert only(personamem(tmp_path, row)).description == "A pilot. Name: X."


def test_rows_of_one_persona_make_one_persona_with_all_their_topics(tmp_path: Path) -> None:
    rows = [
        personamem_row(topic_preference="Food", total_tokens_in_chat_history_128k=10),
        personamem_row(topic_preference="Travel", total_tokens_in_chat_history_128k=90),
        personamem_row(topic_preference="Travel"),
        personamem_row(topic_preference="Art", total_tokens_in_chat_history_128k=5),
        personamem_row(persona_id=8, total_tokens_in_chat_history_128k=500),
    ]
    reading = personamem(tmp_path, *rows)
    first, second = reading.personas
    assert first.topic_tags == ("Travel", "Art", "Food")  # ties by name
    assert (first.interaction_length_bucket, second.interaction_length_bucket) == ("medium", "short")  # 1000 and 500
    assert reading.n_in == 5 and dict(reading.filtered) == {"further_row": 3}


def test_another_persona_under_the_same_id_is_rejected(tmp_path: Path) -> None:
    reading = personamem(tmp_path, personamem_row(), personamem_row(expanded_persona={"name": "Somebody else"}))
    assert len(reading.personas) == 1
    assert [(reject.kind, reject.row_key) for reject in reading.rejects] == [("schema", "rows.jsonl:2")]


@pytest.mark.parametrize("expanded", ["{", "[]", "{}", None, 7, "__import__('os')", {"stereotypical_preferences": "x"}])
def test_an_expanded_persona_that_is_no_object_with_facts_rejects_the_row(tmp_path: Path, expanded: Any) -> None:
    reading = personamem(tmp_path, personamem_row(persona_id=1, short_persona=None, expanded_persona=expanded))
    assert [reject.kind for reject in reading.rejects] == ["schema"] and not reading.personas


def test_a_later_good_row_makes_up_for_a_bad_one_of_the_same_persona(tmp_path: Path) -> None:
    reading = personamem(tmp_path, personamem_row(expanded_persona="{"), personamem_row())
    assert len(reading.personas) == 1 and len(reading.rejects) == 1


def test_rows_of_one_persona_are_told_alike_in_whatever_order_they_come(tmp_path: Path) -> None:
    rows = [
        personamem_row(expanded_persona={"name": "X"}, short_persona=short, total_tokens_in_chat_history_128k=tokens)
        for short, tokens in (("A pilot", 3), ("A cook", 1), ("A baker", 2), ("A cook", 2))
    ]
    rows[3]["expanded_persona"] = {"age": 40, "name": "X"}
    rows[0]["expanded_persona"] = {"name": "X", "age": 40}
    rows[1]["expanded_persona"] = rows[2]["expanded_persona"] = {"name": "X", "age": 40}
    rows.append(personamem_row(expanded_persona={"name": "X", "age": 40}, short_persona="{'a': open('x')}"))
    found = [personamem(tmp_path, *some) for some in itertools.permutations(rows)]
    assert len({only(reading) for reading in found}) == 1
    assert {tuple(reading.filtered.items()) for reading in found} == {(("further_row", 3),)}
    assert only(found[0]).description == "A baker. Name: X. Age: 40."


def test_what_is_said_of_others_is_not_said_of_the_persona(tmp_path: Path) -> None:
    expanded = {
        "husband": {"gender": "male", "marital_status": "married"},
        "late_wife": {"race": "Asian"},
        "Daughters": {"hobbies": ["ballet"]},
        "background": {"ethnicity": "Berber", "gender": "female"},
        "family": {"marital_status": "widowed"},
    }
    persona = only(personamem(tmp_path, personamem_row(expanded_persona=expanded)))
    assert (persona.sex, persona.race_ethnicity, persona.marital_status, persona.hobbies) == (
        *("Female", "Berber", "widowed", ()),
    )


def test_a_short_persona_within_the_object_is_unpacked_too(tmp_path: Path) -> None:
    row = personamem_row(
        short_persona="A pilot", expanded_persona={"name": "X", "short_persona": "{'persona': 'A vet'}"}
    )
    assert only(personamem(tmp_path, row)).description == "A vet. Name: X."


def mapped(tmp_path: Path, row: dict[str, Any], mapping: dict[str, str]) -> WholeReading:
    return read(read_mapped, write_jsonl(tmp_path / "rows.jsonl", [row]), mapping=mapping)


def test_mapped_columns_become_ours(tmp_path: Path) -> None:
    row = {"id": 5, "text": "钓鱼的老人", "years": "70", "job": "Registered nurse", "likes": "fishing"}
    mapping = {"source_key": "id", "description": "text", "age": "years", "occupation": "job", "hobbies": "likes"}
    persona = only(mapped(tmp_path, row, mapping))
    assert (persona.source_key, persona.language, persona.age) == ("5", "zh", 70)
    assert (persona.occupation_group, persona.hobbies) == ("healthcare_practitioners", ("fishing",))


@pytest.mark.parametrize("blank", ["", "  ", "N/A", " n/a", "#N/A"])
def test_a_blank_cell_is_no_value_in_any_mapped_column(tmp_path: Path, blank: str) -> None:
    mapping = {name: f"their_{name}" for name in MAPPABLE}
    rows = [{f"their_{name}": blank for name in MAPPABLE} | {"their_description": text} for text in ("A cook.", blank)]
    with (tmp_path / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(mapping.values()))
        writer.writeheader()
        writer.writerows(rows)
    reading = read(read_mapped, tmp_path / "rows.csv", mapping=mapping)
    (persona,) = reading.personas
    given = {name for name in MAPPABLE if getattr(persona, name) not in (None, ())}
    assert given == {"description", "language", "source_key"} and persona.language == "en"
    assert [reject.kind for reject in reading.rejects] == ["schema"]


def test_a_mapping_of_unknown_columns_or_without_a_description_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="found 'descripton'"):
        mapped(tmp_path, {"t": "x"}, {"descripton": "t"})
    with pytest.raises(ConfigError, match="'description' is not mapped"):
        mapped(tmp_path, {"t": "x"}, {"name": "t"})


def test_a_mapped_column_that_the_file_lacks_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="lacks the column 'bio'; found the columns text"):
        mapped(tmp_path, {"text": "x"}, {"description": "bio"})
    with pytest.raises(SourceError, match=r"lacks the column 'yaers'; found .* \(did you mean 'years'\?\)"):
        mapped(tmp_path, {"text": "x", "years": 4}, {"description": "text", "age": "yaers"})


def test_a_mapped_column_may_come_up_late_in_a_json_file(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"id": n, "text": f"x{n}"} for n in range(150)]
    path = write_jsonl(tmp_path / "rows.jsonl", [*rows, {"id": 150, "text": "y", "years": 4}])
    reading = read(read_mapped, path, mapping={"source_key": "id", "description": "text", "age": "years"})
    assert [persona.age for persona in reading.personas] == [*[None] * 150, 4]
    with pytest.raises(SourceError, match=r"lacks the column 'txet'"):
        read(read_mapped, path, mapping={"description": "text", "occupation": "txet"})


def test_a_mapped_column_may_be_absent_from_a_row(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"text": "x"}, {"text": "y", "years": 4}])
    reading = read(read_mapped, path, mapping={"description": "text", "age": "years"})
    assert [persona.age for persona in reading.personas] == [None, 4]


def test_rows_without_a_mapped_key_are_told_apart_by_all_they_say(tmp_path: Path) -> None:
    rows = [{"text": "A cook.", "years": 30}, {"text": "A cook.", "years": 40}, {"text": "A cook.", "years": 30}]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    reading = read(read_mapped, path, mapping={"description": "text", "age": "years"})
    assert [persona.age for persona in reading.personas] == [30, 40]
    assert len({persona.source_key for persona in reading.personas}) == 2
    assert not reading.rejects


@pytest.mark.parametrize(
    ("occupation", "group"),
    [
        ("registered_nurse", "healthcare_practitioners"),
        ("Registered nurses", "healthcare_practitioners"),
        ("office_administrative_support", "office_administrative_support"),
        ("financial_manager", "management"),
        ("first_line_supervisor_of_retail_sales_workers", "sales"),
        ("not_in_workforce", "not_in_workforce"),
        ("retired", "not_in_workforce"),
        ("customer_service_representative", "office_administrative_support"),
        ("janitor_or_building_cleaner", "building_grounds_maintenance"),
        ("Retired science teacher", "not_in_workforce"),
        ("data scientist", "computer_mathematical"),
        ("desert hydrologist at a research institute", "life_physical_social_science"),
        ("oyster farmer", "management"),
        ("apprentice stonemason", "construction_extraction"),
        ("culinary student", "not_in_workforce"),
        ("lighthouse_keeper", "other"),
        ("  ", None),
        (None, None),
    ],
)
def test_occupations_fall_into_their_major_group(occupation: str | None, group: str | None) -> None:
    assert occupation_mapping().group_of(occupation) == group


def test_the_mapping_knows_the_23_major_groups_and_one_for_no_occupation() -> None:
    assert len(occupation_mapping().groups - {"not_in_workforce"}) == 23


def test_a_mapping_file_with_an_unknown_group_or_a_repeated_occupation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("description: d\ngroups: {x: X}\nexact: {y: [a]}\nrules: []\n")
    with pytest.raises(ConfigError, match=r"\['y'\] are not among its groups"):
        occupation_mapping(path)
    path = tmp_path / "b.yaml"
    path.write_text("description: d\ngroups: {x: X, y: Y}\nexact: {x: [a], y: [A]}\nrules: []\n")
    with pytest.raises(ConfigError, match=r"\['a'\] are listed more than once"):
        occupation_mapping(path)


def test_real_nemotron_rows_of_both_kinds_are_read(real_rows: Path) -> None:
    public = read(read_nemotron, real_rows / "nemotron_personas_v1_row.json")
    assert only(public).description.startswith(
        "A 72-year-old man, widowed, education: high school, not in the workforce"
    )
    extended = read(read_nemotron, real_rows / "nemotron_ngc_extended.jsonl")
    assert [persona.occupation_group for persona in extended.personas] == [
        "healthcare_support",
        "education_library",
        "office_administrative_support",
    ]
    assert extended.personas[0].name == "Inez A Newman"


def test_real_personamem_personas_are_read_whatever_their_keys(real_rows: Path) -> None:
    reading = read(read_personamem, real_rows / "personamem_v2_personas.jsonl")
    assert not reading.rejects
    assert [persona.occupation for persona in reading.personas] == [
        "STEM Education Program Designer",
        "Municipal Council Member for Economic Development",
        "Squadron Leader",
        "Senior Counter-Terrorism Intelligence Officer",
        "High School Social Studies Teacher",
    ]
    for persona in reading.personas:
        assert persona.speaking_style and persona.hobbies and persona.race_ethnicity and persona.age


def test_the_real_query_row_has_its_topic(real_rows: Path) -> None:
    persona = only(read(read_personamem, real_rows / "personamem_v2_row521.json"))
    assert (persona.source_key, persona.topic_tags) == ("521", ("Health",))


RELEASED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {
            "current_occupation": "Ferry pilot",
            "interests_hobbies": ["choir"],
            "current_residence": "Bergen, Vestland, Norway",
        },
        {
            "occupation": "Ferry pilot",
            "hobbies": ("choir",),
            "city": "Bergen",
            "state": "Vestland",
            "country": "Norway",
        },
    ),
    (
        {"demographics": {"age": 52, "gender": "Male", "occupation": "Ferry pilot", "location": "Salem, Oregon"}},
        {"age": 52, "sex": "Male", "occupation": "Ferry pilot", "city": "Salem", "state": "Oregon", "country": None},
    ),
    (
        {
            "currentOccupation": {"jobTitle": "Ferry pilot"},
            "maritalStatus": "widowed",
            "educationLevel": "Master mariner",
        },
        {"occupation": "Ferry pilot", "marital_status": "widowed", "education_level": "Master mariner"},
    ),
    (
        {"raceEthnicity": "Sami", "placeOfResidence": {"currentCity": "Alta"}, "speakingStyle": "dry"},
        {"race_ethnicity": "Sami", "city": "Alta", "speaking_style": "dry"},
    ),
    ({"lateWife": {"gender": "Female"}, "residence": "a quiet flat, somewhere"}, {"sex": None, "city": None}),
    ({"level_of_education": "PhD", "residence": "Lyon, France"}, {"education_level": "PhD", "country": "France"}),
]


@pytest.mark.parametrize(("expanded", "columns"), RELEASED)
def test_names_of_fields_vary_and_reach_their_columns(
    tmp_path: Path, expanded: dict[str, Any], columns: dict[str, Any]
) -> None:
    persona = only(personamem(tmp_path, personamem_row(expanded_persona=json.dumps({"name": "Ole", **expanded}))))
    assert {name: getattr(persona, name) for name in columns} == columns


@pytest.mark.parametrize(
    "expanded",
    [
        {"home_address": "SECRET Lane 4"},
        {"contact": {"phoneNumber": "SECRET", "email": "SECRET"}},
        {"sensitive_information": {"passport": "SECRET"}},
        {"routine": "He leaves 14 SECRET Street at six."},
        {"demographics": [{"streetAddress": "SECRET"}]},
    ],
)
def test_how_to_reach_somebody_is_told_to_no_model(tmp_path: Path, expanded: dict[str, Any]) -> None:
    row = personamem_row(expanded_persona=json.dumps({"name": "Ole", "hobbies": ["choir"], **expanded}))
    persona = only(personamem(tmp_path, row))
    assert "choir" in persona.description
    assert "SECRET" not in persona.description
    assert "SECRET" not in inspire("personamem", persona.raw, persona.description)


NESTED = {
    "uid": "p1",
    "profile": {"bio": "Mira repairs bicycles", "facts": ["She dreads paperwork.", "She teaches children to ride"]},
    "likes": ["choir", "knots"],
    "demographics": {"age": "34", "homes": [{"town": "Lisbon"}, {"town": "Brno"}]},
}


def test_a_mapping_reaches_into_objects_and_puts_a_description_together(tmp_path: Path) -> None:
    mapping = {
        "source_key": "uid",
        "description": ["profile.bio", "profile.facts", "likes"],
        "age": "demographics.age",
        "city": "demographics.homes[-1].town",
    }
    path = write_jsonl(tmp_path / "rows.jsonl", [NESTED, {**NESTED, "uid": "p2", "demographics": {}}])
    first, second = read(read_mapped, path, mapping=mapping).personas
    assert first.description == (
        "Mira repairs bicycles. She dreads paperwork. She teaches children to ride. choir, knots."
    )
    assert (first.age, first.city) == (34, "Brno")
    assert (second.age, second.city, second.description) == (None, None, first.description)


def test_sentences_in_a_cell_of_a_table_are_sentences(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("persona\n\"['i keep bees .', 'i swim before dawn .']\"\n", encoding="utf-8")
    persona = only(read(read_mapped, tmp_path / "rows.csv", mapping={"description": "persona"}))
    assert persona.description == "i keep bees . i swim before dawn ."


@pytest.mark.parametrize(
    "changed",
    [{"description": "profile.boi"}, {"age": "demographics.agee"}, {"description": ["profile.bio", "profile.fax"]}],
)
def test_a_path_to_nothing_is_told_with_those_that_there_are(tmp_path: Path, changed: dict[str, Any]) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [NESTED])
    with pytest.raises(SourceError, match=r"lacks the column .*found the columns uid, profile\.bio, profile\.facts"):
        read(read_mapped, path, mapping={"description": "profile.bio", **changed})


def test_only_a_description_is_of_several_columns(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [NESTED])
    with pytest.raises(ConfigError, match="found several for city"):
        read(read_mapped, path, mapping={"description": "profile.bio", "city": ["a", "b"]})


def test_personas_in_a_language_that_the_build_leaves_out_are_none(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"d": "Mira repairs bicycles."}, {"d": "她在港口修自行车。"}])
    reading = Reading("p", languages=["en"])
    source = PersonaSource(pool="p", reader="mapped", path=str(path), mapping={"description": "d"})
    assert [each.language for each in read_mapped([source], reading) if each is not None] == ["en"]
    assert reading.filtered["language"] == 1
    released = write_jsonl(tmp_path / "released.jsonl", [personamem_row()])
    other = Reading("p", languages=["zh"])
    source = PersonaSource(pool="p", reader="personamem", path=str(released))
    assert not list(filter(None, read_personamem([source], other)))
    assert other.filtered["language"] == 1
