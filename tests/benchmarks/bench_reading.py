"""Reading personas: rows in the shape of Nemotron-Personas-USA, from Parquet to `persona_candidates` on disk.

COLLOQUY_BENCH_ROWS=1000000     rows made up (once; they are kept in the system's temporary folder) and read
COLLOQUY_BENCH_POOLS=1          also pools of 500 + 500 out of 20,000 + 1,000 personas with the real encoder: minutes

Both sides run in processes of their own in the same run; the plain side is what a short script would do, row by row.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.foundation import ROOT
from tasks.foundation.settings.sections import PersonaSource
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import describe_part, open_part
from tasks.foundation.tables import TABLES
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.weights import missing, path_of
from tasks.personas.candidates import Gathered, PieceCounter, Writers, gather
from tasks.personas.pool import draw_pool, encode_stored, load_candidates
from tasks.personas.task import STAGE
from tests.made_up_rows import make_nemotron, personamem_rows
from tests.pool_checks import check_pools
from tests.unit.source_stages import FakeContext, rows_of, write_jsonl

ROWS = int(os.environ.get("COLLOQUY_BENCH_ROWS", "1000000"))
POOLS = os.environ.get("COLLOQUY_BENCH_POOLS") == "1"
PLAIN_ROWS = 50_000
"""Rows the plain side reads, which holds them all."""
ENCODER = "all-minilm-l6-v2"
LIMIT_GIB = 3.0
needs_encoder = pytest.mark.skipif(bool(missing(ENCODER)), reason="the encoder's weights are not on this machine")


class TimedPieces(PieceCounter):
    seconds = 0.0

    def count(self, texts: Sequence[str]) -> list[int]:
        started = time.perf_counter()
        counts = super().count(texts)
        self.seconds += time.perf_counter() - started
        return counts


class NoEncoder(Encoder):
    """Unit vectors out of nowhere: what is measured is what is held beside them."""

    dimensions = 384

    def encode(self, texts: Sequence[str], out: np.ndarray | None = None) -> np.ndarray:
        vectors = np.random.default_rng(len(texts)).standard_normal((len(texts), 384), np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        if out is not None:
            out[:] = vectors
        return vectors


def read(source_folder: str, out: str) -> dict[str, float]:
    """The stage's own reading, up to the encoder; then its hash for the commit, and what is held to draw a pool."""
    layout, pieces = Layout(Path(out)), TimedPieces(Encoder(ENCODER))
    source = PersonaSource(pool="p", reader="nemotron", path=source_folder, where={"country": ["USA"]}, licence="x")
    place = layout.root / "persona_candidates.parquet"
    started = time.perf_counter()
    with (
        open_part(layout, place, TABLES["persona_candidates"]) as candidates,
        open_part(layout, layout.root / "duplicates.parquet", TABLES["duplicates"]) as duplicates,
        open_part(layout, layout.root / "rejects.parquet", TABLES["rejects"]) as rejects,
    ):
        (here,) = gather([source], Writers(candidates, duplicates, rejects), pieces)
    told = {"rows": here.reading.n_in, "seconds": time.perf_counter() - started, "peak": peak_gib()}
    assert len(candidates.stored) == here.stop == here.reading.n_in
    return told | {"counting": pieces.seconds} | _afterwards(layout, place, here, candidates.stored)


def _afterwards(layout: Layout, place: Path, here: Gathered, stored: Any) -> dict[str, float]:
    started = time.perf_counter()
    describe_part(layout, place, TABLES["persona_candidates"], "prepare")
    hashed, peak = time.perf_counter() - started, peak_gib()
    held = load_candidates(here, stored)
    rows = [row for row, language in enumerate(held.languages) if language == "en"]
    assert len(encode_stored(here, stored, NoEncoder("none"), rows)) == len(rows)
    draw_pool(range(here.stop), held, "p", 500, 1)
    return {"hashing": hashed, "peak hashing": peak, "peak drawing": peak_gib()}


def plain(source_folder: str, out: str, rows: int, reader: str, counts: bool) -> dict[str, float]:
    """The same columns with dictionaries, one row after the other."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(path_of(ENCODER) / "tokenizer.json"))
    tokenizer.no_truncation()
    columns = ("uuid", "age", "sex", "occupation", "education_level", "marital_status", "city", "state", "country")
    prose = ("persona", "professional_persona", "hobbies_and_interests", "cultural_background")
    started = time.perf_counter()
    made = []
    for row in _plain_rows(source_folder, rows, reader):
        noun = "man" if row["sex"] == "Male" else "woman"
        facts = (
            f"A {row['age']}-year-old {noun}, {row['marital_status']}, education: {row['education_level']}, "
            f"occupation: {row['occupation']}, living in {row['city']}, {row['state']}."
        )
        description = " ".join([facts, *(row[name] for name in prose)])
        candidate = {name: row[name] for name in columns}
        candidate["description"] = description
        candidate["token_count"] = len(tokenizer.encode(description, add_special_tokens=False)) if counts else 0
        candidate["raw"] = json.dumps(row, ensure_ascii=False, sort_keys=True)
        made.append(candidate)
    pq.write_table(pa.Table.from_pylist(made), Path(out) / "plain.parquet", compression="zstd")
    return {"rows": len(made), "seconds": time.perf_counter() - started, "peak": peak_gib()}


def _plain_rows(folder: str, rows: int, reader: str) -> Iterator[dict[str, Any]]:
    if reader == "polars":
        return pl.scan_parquet(f"{folder}/*.parquet").head(rows).collect().iter_rows(named=True)
    import datasets

    files = sorted(map(str, Path(folder).glob("*.parquet")))
    return iter(datasets.load_dataset("parquet", data_files=files, split="train", streaming=True).take(rows))


def peak_gib() -> float:
    """The most memory that this process has held; what its parent held is no part of it."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 2**20


def measured(call: str, module: str = "bench_reading") -> dict[str, float]:
    """What a function of a benchmark returns that is called in a process of its own."""
    program = f"import json; from tests.benchmarks.{module} import *; print(json.dumps({call}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def rows_on_disk(rows: int) -> Path:
    """The folder of made-up rows, made where it is not there yet; another version of the maker makes another."""
    maker = hashlib.sha256((ROOT / "tests" / "made_up_rows.py").read_bytes()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / "colloquy-bench" / f"nemotron-{rows}-{maker}"
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
        make_nemotron(unfinished, rows)
        unfinished.rename(folder)
    return folder


@needs_encoder
def test_reading_against_a_plain_script(tmp_path: Path) -> None:
    folder, sample = rows_on_disk(ROWS), min(ROWS, PLAIN_ROWS)
    plainly = {
        f"{reader}, row by row, pieces {'' if counts else 'not '}counted": measured(
            f"plain({str(folder)!r}, {str(tmp_path)!r}, {sample}, {reader!r}, {counts})"
        )
        for reader, counts in (("datasets", False), ("polars", False), ("polars", True))
    }
    ours = measured(f"read({str(folder)!r}, {str(tmp_path)!r})")
    size = sum(file.stat().st_size for file in folder.iterdir()) / 2**20
    print(f"\n{ROWS:,} rows in {size:,.0f} MiB of Parquet → persona_candidates on disk")
    print(f"{'':42}{'rows':>10}{'rows/s':>9}{'peak GiB':>10}")
    for name, each in plainly.items():
        print(f"{name:42}{each['rows']:10,}{each['rows'] / each['seconds']:9,.0f}{each['peak']:10.2f}")
    own = ours["rows"] / ours["seconds"]
    uncounted = ours["rows"] / (ours["seconds"] - ours["counting"])
    print(f"{'stage, pieces not counted':42}{ours['rows']:10,}{uncounted:9,.0f}")
    print(f"{'stage, pieces counted':42}{ours['rows']:10,}{own:9,.0f}{ours['peak']:10.2f}")
    _, bare, counted = (each["rows"] / each["seconds"] for each in plainly.values())
    print(f"stage : polars = {uncounted / bare:.2f} without, {own / counted:.2f} with the count of pieces")
    print(f"counting pieces took {ours['counting']:.0f} s of {ours['seconds']:.0f} s")
    print(f"hash for the commit: {ours['hashing']:.0f} s, peak {ours['peak hashing']:.2f} GiB")
    print(f"vectors, ids and strata held to draw a pool: peak {ours['peak drawing']:.2f} GiB")
    assert ours["rows"] == ROWS and max(ours["peak"], ours["peak hashing"]) < LIMIT_GIB


@needs_encoder
@pytest.mark.skipif(not POOLS, reason="encodes 21,000 personas: COLLOQUY_BENCH_POOLS=1")
def test_pools_of_five_hundred_out_of_twenty_thousand_and_one_thousand(tmp_path: Path) -> None:
    nemotron = rows_on_disk(20_000)
    personamem = write_jsonl(tmp_path / "personamem.jsonl", list(personamem_rows(1000)))
    sources = [
        {"pool": "nemotron_usa", "reader": "nemotron", "path": str(nemotron)},
        {"pool": "personamem_v2", "reader": "personamem", "path": str(personamem)},
        *_real_sources(),
    ]
    encoder = Encoder(ENCODER, Path(tempfile.gettempdir()) / "colloquy-bench" / "embeddings", threads=2)
    context = FakeContext(STAGE, f"personas.sources={json.dumps(sources)}", "personas.pool_size=500", encoder=encoder)
    started = time.perf_counter()
    prepared = STAGE.prepare(context)
    prepared.accounting.check("personas")
    rows = {name: rows_of(some) for name, some in prepared.rows.items()}
    near = check_pools(rows, encoder, 500, context.settings.personas.dedup.threshold)
    print(f"\n{time.perf_counter() - started:.0f} s; accounting {prepared.accounting.to_json()}")
    for pool, dropped in near.items():
        drawn = sum(row.pool == pool for row in rows["persona_pool"])
        print(f"pool {pool}: {drawn} drawn, {dropped} near-duplicates, quotas exact, no two kept ones near each other")


def _real_sources() -> list[dict[str, str]]:
    """Rows of the real corpora, where somebody has put them."""
    folder = Path(os.environ.get("COLLOQUY_REAL_ROWS") or ROOT.parent / "shared" / "data" / "real_rows")
    files = [
        ("real_v1", "nemotron", "nemotron_personas_v1_row.json"),
        ("real_extended", "nemotron", "nemotron_ngc_extended.jsonl"),
        ("real_personamem", "personamem", "personamem_v2_personas.jsonl"),
    ]
    return [
        {"pool": pool, "reader": reader, "path": str(folder / name)}
        for pool, reader, name in files
        if (folder / name).exists()
    ]
