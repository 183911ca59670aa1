"""Names of characters: of their culture, gender and generation, as rare as the lists allow, the same every time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.foundation.errors import ConfigError
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.types import Language
from tasks.personas.people import BAND_WEIGHTS, NAMES, Culture, NameDealer, NamesFile, draw_people, read_names

CULTURES = {culture.name: culture for culture in read_names().cultures}
languages = st.sampled_from(["en", "zh"])


@given(languages, st.integers(0, 2**40), st.integers(1, 60))
def test_a_name_fits_culture_gender_and_year_of_birth(language: Language, seed: int, count: int) -> None:
    for person in draw_people(language, count, seed):
        culture = CULTURES[person.origin]
        generation = culture.generations[culture.find_generation(read_names().year - person.age)]
        assert culture.language == language
        assert person.given_name in getattr(generation, person.gender)
        family = person.name.removeprefix(f"{person.given_name} ") if language == "en" else person.name
        assert family in culture.families or person.name.removesuffix(person.given_name) in culture.families
        assert person.name not in read_names().avoid


@settings(max_examples=20)
@given(languages, st.integers(0, 2**40))
def test_asking_for_more_changes_none_of_the_first(language: Language, seed: int) -> None:
    assert draw_people(language, 40, seed)[:15] == draw_people(language, 15, seed)


def test_no_full_name_comes_twice_among_thousands() -> None:
    for language in ("en", "zh"):
        people = draw_people(language, 4000, 7)  # type: ignore[arg-type]
        assert max(Counter(person.name for person in people).values()) == 1
        given_names = Counter(person.given_name for person in people)
        assert given_names.most_common(1)[0][1] <= 4000 / 40
        assert {person.origin for person in people} == {
            culture.name for culture in CULTURES.values() if culture.language == language
        }


@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 99))
def test_every_combination_comes_once_before_any_comes_again(n_given: int, n_families: int, seed: int) -> None:
    names = NamesFile.model_validate(
        {
            "description": "x",
            "year": 2026,
            "cultures": [
                {
                    "language": language,
                    "weight": 1,
                    "name": language,
                    "families": " ".join(f"F{number}" for number in range(n_families)),
                    "generations": [{"M": " ".join(f"M{number}" for number in range(n_given)), "F": "Ann"}],
                }
                for language in ("en", "zh")
            ],
        }
    )
    dealer = NameDealer(names, seed)
    total = n_given * n_families
    dealt = [dealer.deal(names.cultures[0], "M", 30)[1] for _ in range(3 * total)]
    for turn in range(3):
        assert len(set(dealt[turn * total : (turn + 1) * total])) == total


def test_there_are_names_enough_in_both_languages() -> None:
    for language in ("en", "zh"):
        own = [culture for culture in CULTURES.values() if culture.language == language]
        assert len({family for culture in own for family in culture.families}) >= 80
        for gender in "MF":
            of_gender = {name for each in own for part in each.generations for name in getattr(part, gender)}
            assert len(of_gender) >= 60


def test_the_band_weights_are_of_bands_that_exist() -> None:
    assert set(BAND_WEIGHTS) == set(taxonomy("age_band").names)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("until: 1945", "until: 1999"), "expected `until` rising"),
        (("language: zh", "language: en"), "expected a culture of each language, found none of zh"),
    ],
)
def test_a_file_of_names_that_cannot_be_used_is_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    file = tmp_path / "names.yaml"
    file.write_text(NAMES.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_names(file)


def test_who_was_born_in_the_last_year_of_a_generation_belongs_to_it() -> None:
    culture = Culture.model_validate(
        {
            "language": "en",
            "weight": 1,
            "name": "x",
            "families": "A",
            "generations": [{"until": 1950, "M": "Al", "F": "An"}, {"M": "Bo", "F": "Bea"}],
        }
    )
    assert [culture.find_generation(year) for year in (1900, 1950, 1951)] == [0, 0, 1]
