"""Rows of the personas stage: source personas, the sampled pool, designed characters, duplicates."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tasks.foundation.tables.types import Float32, Float64, Int32, Int64, Json, Language, Row, Table


class BigFive(Row):
    """Five trait levels; `High` or `Low` for characters, the source's own words for source personas."""

    openness: str = Field(description="level of openness to experience")
    conscientiousness: str = Field(description="level of conscientiousness")
    extraversion: str = Field(description="level of extraversion")
    agreeableness: str = Field(description="level of agreeableness")
    neuroticism: str = Field(description="level of neuroticism")


class PersonaCandidate(Row):
    persona_id: str = Field(description="content id over pool and source key")
    pool: str = Field(description="nemotron_usa, personamem_v2 or a configured name")
    source_key: str = Field(description="the source's own key of the row (uuid, persona_id)")
    language: Language = Field(description="language of the description")
    name: str | None = Field(description="the persona's name; null: not given apart from the text")
    description: str = Field(description="one verbalised paragraph: what is encoded and shown to models")
    age: Int32 | None = Field(description="age in years; null: absent in source")
    age_bucket: str | None = Field(description="18–24, 25–34, 35–44, 45–54, 55–64, 65+ or under 18; null: no age")
    sex: str | None = Field(
        description="Male, Female or Nonbinary, however the source spells it; another word as it is there; "
        "null: absent in source"
    )
    occupation: str | None = Field(description="as the source says; null: absent in source")
    occupation_group: str | None = Field(
        description="US SOC major group, not_in_workforce or other; null: no occupation in source"
    )
    education_level: str | None = Field(description="as the source says; null: absent in source")
    marital_status: str | None = Field(description="as the source says; null: absent in source")
    race_ethnicity: str | None = Field(description="as the source says; null: absent in source")
    city: str | None = Field(description="null: absent in source")
    state: str | None = Field(description="null: absent in source")
    country: str | None = Field(description="null: absent in source")
    big_five: BigFive | None = Field(description="trait levels; null: absent in source")
    topic_tags: list[str] = Field(description="topics of the persona's rows, most frequent first")
    interaction_length_bucket: str | None = Field(
        description="short, medium or long: tercile of history tokens; null: the source has no histories"
    )
    speaking_style: str | None = Field(description="null: absent in source")
    hobbies: list[str] = Field(description="hobbies as the source lists them; may be empty")
    token_count: Int32 = Field(description="word pieces of the description in the English encoder, untruncated")
    stratum: str = Field(description="what its pool is sampled by, parts joined by ' × '; 'unknown' for an absent part")
    licence: str = Field(description="licence of the source")
    raw: Json = Field(description="the source row")


class PersonaPoolRow(Row):
    pool: str = Field(description="the pool")
    rank: Int32 = Field(description="0-based place in a seeded shuffle of the whole pool", ge=0)
    persona_id: str = Field(description="the persona at this rank")
    stratum: str = Field(description="the persona's stratum, its parts joined by ' × '")
    quota: Int32 = Field(description="personas drawn from this stratum", ge=0)


class Character(Row):
    character_id: str = Field(description="content id over language and design brief")
    language: Language = Field(description="language of the descriptions")
    persona_id: str | None = Field(description="the inspiring persona; null: inspired by another text")
    inspired_by: str = Field(description="where the inspiring text is from: a pool, or a file or dataset and its row")
    name: str = Field(description="full name, drawn by culture, gender and year of birth")
    given_name: str = Field(description="the given part of it")
    gender: Literal["M", "F", "Unknown"] = Field(description="gender")
    age: Int32 = Field(description="age in years", ge=0)
    age_band: str = Field(description="one of the age bands of configs/taxonomies/age_band.yaml")
    big_five: BigFive = Field(description="High or Low for each trait")
    moral_values: list[str] = Field(description="moral foundations the character holds to")
    social_skill: str = Field(description="one of the social skills of the attribute pool")
    personal_values: list[str] = Field(description="Schwartz values the character holds to")
    decision_style: str = Field(description="rational, intuitive, dependent, avoidant or spontaneous")
    background: str = Field(description="a short life story")
    hobby: str = Field(description="hobbies")
    education: str = Field(description="education")
    occupation: str = Field(description="occupation")
    culture: str = Field(description="cultural background")
    relationship: str = Field(description="the people in the character's life")
    speaking_style: str = Field(description="speaking style and language habits")


class Diversity(Row):
    table_name: str = Field(description="the table whose rows were looked at")
    language: Language = Field(description="language of the rows")
    statistic: Literal["mean_cosine", "mean_jaccard", "attribute_coverage"] = Field(
        description="mean likeness of two texts (by encoder, or by characters where none knows the language); share "
        "of the attribute pool's values that occur"
    )
    value: Float64 | None = Field(description="0 to 1; null: fewer than two texts, or no row")
    n: Int64 = Field(description="rows looked at", ge=0)
    n_of: Int64 = Field(description="pairs of texts, or values of the attribute pool, that the value is over", ge=0)


class Duplicate(Row):
    table_name: str = Field(description="table the dropped row would have been in")
    row_id: str = Field(description="id of the dropped row; exact repeats of one id carry '#n'")
    duplicate_of: str = Field(
        description="id of the kept row that is closest to it; of a repeat (#n) that of the row it repeats"
    )
    cosine: Float32 | None = Field(description="cosine similarity of the two; null: found by their texts")
    method: Literal["exact", "embedding", "minhash"] = Field(
        description="how it was found: exact, the same text; embedding, by cosine; minhash, by the share of character "
        "sequences in common"
    )


TABLES = (
    Table("persona_candidates", PersonaCandidate, ("persona_id",), "one row per source persona"),
    Table("persona_pool", PersonaPoolRow, ("pool", "rank"), "one row per sampled persona"),
    Table("characters", Character, ("character_id",), "one row per designed dialogue participant"),
    Table("duplicates", Duplicate, ("table_name", "row_id"), "one row per dropped duplicate"),
    Table("diversity", Diversity, ("table_name", "language", "statistic"), "one row per table, language and statistic"),
)
