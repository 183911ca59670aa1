"""What the pipeline itself takes at the size of the paper, on models that answer at once.

COLLOQUY_BENCH_SIZE=0.02       the share of eyt-paper's 100 seeds a pool (1: all 3,400 conversations)
COLLOQUY_BENCH_FOLDER=…        where the build stays; else a temporary folder

Everything is as in bench_rehearsal.py but for the models: they are scripted and answer in the same process, so that
nothing waits and what is measured is Colloquy's own work.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from tests.benchmarks.bench_rehearsal import (
    FOLDER,
    Rehearsal,
    files_of,
    persona_sources,
    say,
    size_of,
    stages_of,
)

SIZE = float(os.environ.get("COLLOQUY_BENCH_SIZE", "0.02"))
SEEDS = 100
SPARE = 4
"""Personas a pool beside those that seeds are made of."""


def of_size(folder: Path) -> dict[str, dict[str, Any]]:
    seeds = max(2, round(SEEDS * SIZE))
    return {
        "personas": {"sources": persona_sources(folder, 2 * seeds + 20), "pool_size": seeds + SPARE},
        "chatseeds": {"per_pool": seeds},
    }


def test_the_paper_on_models_that_answer_at_once(tmp_path: Path) -> None:
    folder = Path(FOLDER or tmp_path) / "eyt-at-once"
    folder.mkdir(parents=True, exist_ok=True)
    rehearsal = Rehearsal(folder, None, "eyt-paper", of_size(folder))
    first = rehearsal.run("first")
    say("", *stages_of(first), files_of(rehearsal.artifacts))
    replies = sum(each["calls"] for each in first["results"])
    cache = sum(path.stat().st_size for path in (rehearsal.artifacts / "cache").glob("replies.*"))
    say(f"the reply cache: {cache / 1e6:.1f} MB, {cache / replies:,.0f} bytes a reply")
    for one in ("check", "report"):
        told = rehearsal(one, "--build", "first")
        say(f"colloquy {one}: {told['seconds']:.1f} s, {told['processor']:.1f} of processor, {told['peak']:.2f} GiB")
    say(f"the page: {size_of(rehearsal.artifacts / 'reports') / 1e6:.1f} MB")
    for each in first["results"]:
        assert each["n_in"] == each["n_produced"] + each["n_filtered"] + each["n_failed"]
    if not FOLDER:
        shutil.rmtree(folder)
