"""Dialogues in the schemas of SODA and LCCC, made up by a seed: as many as a benchmark needs.

Utterances come from banks, as people say the same things; one dialogue in a hundred is the one before it again.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FILE_ROWS, BATCH_ROWS = 400_000, 20_000
BANK = 200_000
EN = (
    "I you we they think know hope mean said told asked about the a my your work dinner garden train letter brother "
    "sister doctor school weather music money really never always maybe today tomorrow last week again together "
    "because when but and so if with for from into after before good late tired happy sure sorry thanks please"
)
ZH = (
    "我 你 他 今天 明天 昨天 真的 不 想 去 吃 看 买 书 电影 公园 医院 学校 老师 妈妈 朋友 工作 下班 加班 "
    "天气 下雨 好 吧 吗 呢 了 的 都 还 再 一起"
)
NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana", "Ivo", "June", "Kai", "Lena"]
REPEATED = 0.01


def make_soda(folder: Path, rows: int, seed: int = 1) -> Path:
    """Parquet files of `rows` dialogues of 4 to 12 turns of 4 to 24 words, with the columns of SODA that are read."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    said, stories = _bank(rng, EN, 4, 24, " "), _bank(rng, EN, 30, 60, " ", size=BANK // 10)
    shards = -(-rows // FILE_ROWS)
    for shard in range(shards):
        here = min(FILE_ROWS, rows - shard * FILE_ROWS)
        with pq.ParquetWriter(folder / f"train-{shard:05d}-of-{shards:05d}.parquet", _SODA) as file:
            for start in range(0, here, BATCH_ROWS):
                file.write_table(_soda(rng, said, stories, min(BATCH_ROWS, here - start)))
    return folder


def make_lccc(path: Path, rows: int, seed: int = 1) -> Path:
    """A gzipped file of `rows` arrays of 2 to 6 utterances of 2 to 14 words, with spaces between the words."""
    rng = np.random.default_rng(seed)
    bank = _bank(rng, ZH, 2, 14, " ").to_pylist()
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
        for start in range(0, rows, BATCH_ROWS):
            turns = _lengths(rng, min(BATCH_ROWS, rows - start), 2, 6)
            places = iter(rng.integers(0, len(bank), int(turns.sum())).tolist())
            line = ""
            for count, repeats in zip(turns.tolist(), (rng.random(len(turns)) < REPEATED).tolist(), strict=True):
                fresh = json.dumps([bank[next(places)] for _ in range(count)], ensure_ascii=False)
                line = line if repeats and line else fresh
                file.write(f"{line}\n")
    return path


_SODA = pa.schema(
    [
        ("dialogue", pa.list_(pa.string())),
        ("speakers", pa.list_(pa.string())),
        ("narrative", pa.string()),
        ("split", pa.string()),
    ]
)


def _soda(rng: np.random.Generator, said: pa.Array, stories: pa.Array, rows: int) -> pa.Table:
    turns = _lengths(rng, rows, 4, 12)
    offsets = pa.array(np.concatenate([[0], np.cumsum(turns)]), pa.int32())
    n = int(turns.sum())
    place = np.arange(n) - np.repeat(np.cumsum(turns) - turns, turns)
    first = np.repeat(rng.integers(0, len(NAMES), rows), turns)
    second = (first + np.repeat(rng.integers(1, len(NAMES), rows), turns)) % len(NAMES)
    speakers = pa.array(NAMES).take(pa.array(np.where(place % 2, second, first)))
    dialogues = pa.ListArray.from_arrays(offsets, said.take(pa.array(rng.integers(0, len(said), n))))
    table = pa.table(
        [
            dialogues,
            pa.ListArray.from_arrays(offsets, speakers),
            stories.take(pa.array(rng.integers(0, len(stories), rows))),
            pa.array(["train"] * rows),
        ],
        schema=_SODA,
    )
    repeats = rng.random(rows) < REPEATED
    repeats[0] = False
    return table.take(pa.array(np.arange(rows) - repeats))


def _lengths(rng: np.random.Generator, rows: int, fewest: int, most: int) -> np.ndarray:
    return rng.integers(fewest, most + 1, rows)


def _bank(rng: np.random.Generator, words: str, fewest: int, most: int, between: str, size: int = BANK) -> pa.Array:
    """`size` texts of some words each."""
    lengths = _lengths(rng, size, fewest, most)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    known = pa.array(words.split())
    chosen = known.take(pa.array(rng.integers(0, len(known), int(lengths.sum()))))
    return pc.binary_join(pa.ListArray.from_arrays(offsets, chosen), between)
