"""Reading seed dialogues: rows in the shapes of SODA and LCCC, filtered, deduplicated and sampled before paying.

COLLOQUY_BENCH_DIALOGUES=1000000     rows made up (once; kept in the system's temporary folder) and read, 15 % of
                                     them SODA's; 8000000 are as many as both corpora have
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from pathlib import Path

from tasks.foundation import ROOT
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import describe_part
from tasks.foundation.tables import TABLES
from tasks.scenes.task import STAGE
from tests.benchmarks.bench_reading import measured, peak_gib
from tests.made_up_dialogues import REPEATED, make_lccc, make_soda
from tests.unit.source_stages import FakeContext

ROWS = int(os.environ.get("COLLOQUY_BENCH_DIALOGUES", "1000000"))
SODA_SHARE = 0.15
SAMPLE = 2000
LIMIT_GIB = 3.0


def read(folder: str) -> dict[str, float]:
    """The stage's first step over both corpora, and the hash of its largest table for the commit."""
    sources = [
        {"corpus": "soda", "reader": "soda", "path": f"{folder}/soda", "licence": "x"},
        {"corpus": "lccc", "reader": "lccc", "path": f"{folder}/lccc.jsonl.gz", "licence": "x"},
    ]
    settings = (f"scenes.sources={json.dumps(sources)}", f"scenes.sample={{en: {SAMPLE}, zh: {SAMPLE}}}")
    context = FakeContext(STAGE, *settings)
    started = time.perf_counter()
    prepared = STAGE.prepare(context)
    seconds, peak = time.perf_counter() - started, peak_gib()
    prepared.accounting.check("scenes")
    seeds = prepared.rows["seed_dialogues"]
    started = time.perf_counter()
    describe_part(Layout(seeds.path.parent), seeds.path, TABLES["seed_dialogues"], "prepare")  # type: ignore[union-attr]
    return {
        "rows": prepared.accounting.n_in + len(prepared.items),
        "seconds": seconds,
        "peak": peak,
        "hashing": time.perf_counter() - started,
        "peak hashing": peak_gib(),
        "items": len(prepared.items),
        **{f"filtered {reason}": count for reason, count in prepared.accounting.filtered.items()},
    }


def rows_on_disk(rows: int) -> Path:
    """The folder of made-up corpora, made where it is not there yet."""
    maker = hashlib.sha256((ROOT / "tests" / "made_up_dialogues.py").read_bytes()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / "colloquy-bench" / f"dialogues-{rows}-{maker}"
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
        soda = int(rows * SODA_SHARE)
        make_soda(unfinished / "soda", soda)
        make_lccc(unfinished / "lccc.jsonl.gz", rows - soda)
        unfinished.rename(folder)
    return folder


def test_reading_both_corpora() -> None:
    folder = rows_on_disk(ROWS)
    told = measured(f"read({str(folder)!r})", module="bench_scenes")
    print(f"\n{told['rows']:,} rows, {told['rows'] / told['seconds']:,.0f} a second, peak {told['peak']:.2f} GiB")
    print(f"hash for the commit: {told['hashing']:.0f} s, peak {told['peak hashing']:.2f} GiB")
    left_out = {name.partition(" ")[2]: count for name, count in told.items() if name.startswith("filtered")}
    print("left out: " + ", ".join(f"{reason} {count:,}" for reason, count in left_out.items()))
    assert told["rows"] == ROWS and told["items"] == 2 * SAMPLE
    assert left_out["duplicate"] >= 0.8 * REPEATED * ROWS
    assert max(told["peak"], told["peak hashing"]) < LIMIT_GIB
