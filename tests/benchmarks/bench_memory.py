"""Memory of a stage with many rows: small requests to the scripted model, everything on (cache, ledger, parts).

COLLOQUY_BENCH_ROWS (default 1,000,000) rows are worked in a process of its own; its peak memory is printed
with that of a tenth of the rows beside it.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from tasks.foundation.run.context import Workspace
from tasks.foundation.store.layout import Layout
from tests.many_rows.task import STAGE
from tests.whole_stage import run_whole

ROWS = int(os.environ.get("COLLOQUY_BENCH_ROWS", "1000000"))
SHARDS_AT_ONCE = 4
LIMIT_GIB = 1.5


async def _run(folder: Path) -> None:
    workspace = Workspace.open("test", ("run.rows_in_flight=64",), Layout(folder / "artifacts"))
    started = time.perf_counter()
    commit = await run_whole(STAGE, workspace, "bench", shards_at_once=SHARDS_AT_ONCE)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{len(commit.tables['llm_calls'])} {commit.accounting.n_produced} {seconds:.1f} {peak:.3f}")


def run_in(folder: str) -> None:
    """The run itself; what the child process calls."""
    asyncio.run(_run(Path(folder)))


def _measured(rows: int, folder: Path) -> tuple[int, int, float, float]:
    """Shards, rows, seconds and peak memory (GiB) of a run in a process of its own."""
    environment = {**os.environ, "COLLOQUY_BENCH_ROWS": str(rows)}
    program = "import sys; from tests.benchmarks import bench_memory; bench_memory.run_in(sys.argv[1])"
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    shards, worked, seconds, peak = done.stdout.split()[-4:]
    return int(shards), int(worked), float(seconds), float(peak)


def test_memory_of_a_stage_with_many_rows(tmp_path: Path) -> None:
    print(f"\n{'rows':>12} {'shards':>7} {'rows/s':>8} {'peak GiB':>9}")
    for rows in (ROWS // 10, ROWS):
        shards, worked, seconds, peak = _measured(rows, tmp_path / str(rows))
        print(f"{worked:12,} {shards:7} {worked / seconds:8.0f} {peak:9.2f}")
    assert worked == ROWS and peak < LIMIT_GIB
