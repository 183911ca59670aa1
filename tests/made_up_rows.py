"""Rows in the schemas of the persona corpora, made up by a seed: as many as a test or a benchmark needs.

Texts are walks from word to word through the bundled sample, so that words come as often and sentences are as
long as there; the people are as old and as busy as in the corpora.
"""

from __future__ import annotations

import itertools
import json
import random
import uuid
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tasks.foundation import ROOT
from tasks.foundation.settings.strict_yaml import load_yaml

SAMPLE = ROOT / "configs" / "sample" / "nemotron_personas.jsonl"
OCCUPATIONS = ROOT / "tests" / "data" / "census_occupations.yaml"
FILE_ROWS, BATCH_ROWS = 90_000, 10_000
SENTENCES = {
    "persona": 2,
    "professional_persona": 2,
    "sports_persona": 1,
    "arts_persona": 1,
    "travel_persona": 1,
    "culinary_persona": 1,
    "cultural_background": 4,
    "skills_and_expertise": 3,
    "hobbies_and_interests": 5,
    "career_goals_and_ambitions": 3,
}
CODES = {
    "sex": ["Male", "Female"],
    "marital_status": ["married_present", "never_married", "divorced", "widowed", "separated"],
    "education_level": ["high_school", "some_college", "bachelors", "graduate", "associates", "less_than_9th"],
    "bachelors_field": [None, "", "arts_humanities", "stem", "business"],
    "state": ["CA", "TX", "FL", "NY", "PA", "IL", "OH", "GA", "NC", "MI", "WA", "OR", "ME", "NM", "UT"],
    "country": ["USA"],
}
TOPICS = ["Travel", "Health", "Food", "Books", "Finance", "Music", "Sport", "Family", "Work", "Pets"]


def make_nemotron(folder: Path, rows: int, seed: int = 1) -> Path:
    """Parquet files of `rows` personas in `folder`, with the 23 columns of version 1.1.

    Texts are shared, as people share hobbies: each column has 20,000 different ones. One row in a hundred is the
    row before it, a year older.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    banks = {name: pa.array(_texts(rng, min(rows, 20_000), count)) for name, count in SENTENCES.items()}
    shards = -(-rows // FILE_ROWS)
    for shard in range(shards):
        here = min(FILE_ROWS, rows - shard * FILE_ROWS)
        tables = [_nemotron(rng, banks, min(BATCH_ROWS, here - start)) for start in range(0, here, BATCH_ROWS)]
        file = folder / f"train-{shard:05d}-of-{shards:05d}.parquet"
        pq.write_table(pa.concat_tables(tables), file, row_group_size=FILE_ROWS)
    return folder


def _nemotron(rng: np.random.Generator, banks: dict[str, pa.Array], rows: int) -> pa.Table:
    names = _some(rng, _names(), rows)
    columns: dict[str, Any] = {
        name: pc.binary_join_element_wise(names, _some(rng, bank, rows), " ") for name, bank in banks.items()
    }
    columns |= {name: _some(rng, values, rows) for name, values in CODES.items()}
    lists = [repr([" ".join(text.split()[:3]) for text in _texts(rng, 5, 1)]) for _ in range(200)]
    columns |= {name: _some(rng, lists, rows) for name in ("skills_and_expertise_list", "hobbies_and_interests_list")}
    columns |= {"occupation": _some(rng, _occupations(), rows), "city": _some(rng, _places(), rows)}
    columns["zipcode"] = pa.array([f"{code:05d}" for code in rng.integers(501, 99950, rows)])
    columns["age"] = pa.array(rng.integers(18, 95, rows))
    repeats = rng.random(rows) < 0.01
    repeats[0] = False
    table = pa.table(columns).take(pa.array(np.arange(rows) - repeats))
    ages = pc.add(table["age"], pa.array(repeats.astype(np.int64)))
    table = table.set_column(table.schema.get_field_index("age"), "age", ages)
    bits = rng.bytes(16 * rows)
    ids = [str(uuid.UUID(bytes=bits[start : start + 16])) for start in range(0, 16 * rows, 16)]
    return table.add_column(0, "uuid", pa.array(ids))


def personamem_rows(personas: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Five query rows a persona, with the keys that matter, spelt in the ways of the corpus."""
    rng = np.random.default_rng(seed)
    texts = iter(_texts(rng, personas * 6, 1))
    draw = random.Random(seed)
    for number in range(personas):
        persona = {
            "short_persona": next(texts),
            "name": f"{draw.choice(_names())} {draw.choice(_names())}",
            "age": draw.randint(18, 90),
            draw.choice(["gender", "sex"]): draw.choice(["Male", "Female", "Non-binary"]),
            draw.choice(["race", "race_ethnicity"]): draw.choice(["White", "Igbo Nigerian", "Korean American"]),
            "location": {"city": draw.choice(_places()), "country": "USA"},
            draw.choice(["occupation", "career", "work"]): {"title": draw.choice(_occupations()).replace("_", " ")},
            draw.choice(["hobbies", "hobbies_interests", "hobbies_and_interests"]): [next(texts), next(texts)],
            "daily_routine": next(texts),
            draw.choice(["speaking_style", "speaking_style_with_chatbot", "speaking_style_to_chatbot"]): next(texts),
            "stereotypical_preferences": [next(texts)],
        }
        tokens = draw.randint(20_000, 130_000)
        short = persona["short_persona"]
        for query in range(5):
            yield {
                "persona_id": number,
                "short_persona": repr({"persona": short}) if number % 3 == 0 else short,
                "expanded_persona": json.dumps(persona),
                "user_query": repr({"role": "user", "content": "What next?"}),
                "topic_preference": draw.choice(TOPICS),
                "total_tokens_in_chat_history_128k": tokens - query,
            }


def _some(rng: np.random.Generator, values: Any, count: int) -> pa.Array:
    values = values if isinstance(values, pa.Array) else pa.array(values)
    return values.take(pa.array(rng.integers(0, len(values), count)))


def _texts(rng: np.random.Generator, count: int, sentences: int) -> list[str]:
    """Texts of some sentences, each a walk through the words that follow one another in the sample."""
    followers, starts = _word_chain()
    draw = random.Random(int(rng.integers(2**62)))
    texts = []
    for _ in range(count):
        words = []
        for _ in range(sentences):
            word = draw.choice(starts)
            while True:
                words.append(word)
                if word.endswith(".") or word not in followers:
                    break
                word = draw.choice(followers[word])
        texts.append(" ".join(words))
    return texts


@cache
def _word_chain() -> tuple[dict[str, list[str]], list[str]]:
    followers: dict[str, list[str]] = defaultdict(list)
    starts = []
    for row in _sample():
        for column in SENTENCES:
            words = f"{str(row.get(column) or '').rstrip('.')}.".split()
            starts.append(words[0])
            for one, next_one in itertools.pairwise(words):
                followers[one].append(next_one)
    return dict(followers), starts


@cache
def _names() -> list[str]:
    return sorted({str(row["persona"]).split()[0] for row in _sample() if str(row.get("persona") or "").strip()})


@cache
def _places() -> list[str]:
    places = sorted({str(row["city"]) for row in _sample()})
    return [f"{before} {place}".strip() for place in places for before in ("", "North", "New", "East", "Port")]


@cache
def _occupations() -> list[str]:
    groups = load_yaml(OCCUPATIONS.read_text(encoding="utf-8"))
    return [occupation for each in groups.values() for occupation in each]


@cache
def _sample() -> list[dict[str, Any]]:
    rows = []
    for line in SAMPLE.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:  # the sample has bad lines on purpose
            continue
    return rows
