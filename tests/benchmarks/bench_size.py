"""What the pipeline itself takes: at the size of the paper on models that answer at once, and over a million turns.

COLLOQUY_BENCH_SIZE=0.02       the share of eyt-paper's 100 seeds a pool (1: all 3,400 conversations)
COLLOQUY_BENCH_SAMPLES=1       tries at each of 1,000 seeds by 17 targets, made up (7: more than a million turns)
COLLOQUY_BENCH_FOLDER=…        where the builds stay; else a temporary folder

The first is as in bench_rehearsal.py but for the models: they are scripted and answer in the same process, so that
nothing waits and what is measured is Colloquy's own work. The second takes a build that is made up (see
tests/made_up_evaluation.py) through metrics, checks and the report, each in a process of its own.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tasks.foundation import ROOT
from tasks.foundation.run.context import Workspace
from tasks.foundation.store.layout import Layout
from tasks.metrics.task import STAGE
from tests.benchmarks.bench_rehearsal import (
    FOLDER,
    Rehearsal,
    files_of,
    persona_sources,
    say,
    size_of,
    stages_of,
)
from tests.made_up_evaluation import BUILD, JUDGE, SECOND, SIMULATOR, Size, make_build
from tests.whole_stage import run_whole

SIZE = float(os.environ.get("COLLOQUY_BENCH_SIZE", "0.02"))
SAMPLES = int(os.environ.get("COLLOQUY_BENCH_SAMPLES", "1"))
SEEDS = 100
SPARE = 4
"""Personas a pool beside those that seeds are made of."""
SETTINGS = (
    "metrics.resamples=2000",
    f"conversation.simulator={SIMULATOR}",
    f"judging.judges=[{JUDGE}, {SECOND}]",
    f"judging.subsample={{judges: [{SECOND}], n: 46, by: [pool, target], seed: 1}}",
)


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
    say("", *stages_of(first), f"{first['processor']:.0f} s of processor", files_of(rehearsal.artifacts))
    replies = sum(each["calls"] for each in first["results"])
    cache = sum(path.stat().st_size for path in (rehearsal.artifacts / "cache").glob("replies.*"))
    say(f"the reply cache: {cache / 1e6:.1f} MB, {cache / replies:,.0f} bytes a reply")
    for one in ("check", "report"):
        told = rehearsal(one, "--build", "first")
        say(f"colloquy {one}: {told['seconds']:.1f} s, {told['processor']:.1f} of processor, {told['peak']:.2f} GiB")
    say(pages_of(rehearsal.artifacts / "reports"))
    for each in first["results"]:
        assert each["n_in"] == each["n_produced"] + each["n_filtered"] + each["n_failed"]
    if not FOLDER:
        shutil.rmtree(folder)


def measure_metrics(root: str) -> None:
    """The metrics of the made-up build; what a child process calls."""
    asyncio.run(run_whole(STAGE, Workspace.open("test", SETTINGS, Layout(Path(root))), BUILD))


def call_command(root: str, *arguments: str) -> None:
    """A command of colloquy over the made-up build; what a child process calls."""
    from flows.cli.main import main

    os.environ["COLLOQUY_ARTIFACTS"] = root
    sys.argv = ["colloquy", *arguments, "--build", BUILD]
    main()


def in_a_process(does: Callable[..., None], arguments: Sequence[str]) -> tuple[float, float, float]:
    """Seconds, processor seconds and peak memory (GiB) of a function of this module in a process of its own."""
    program = f"import sys; from tests.benchmarks import bench_size; bench_size.{does.__name__}(*sys.argv[1:])"
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", program, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, f"{does.__name__} {arguments} ended with {child.returncode}"
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20


def test_a_million_turns_from_their_metrics_to_the_page(tmp_path: Path) -> None:
    root = Path(FOLDER or tmp_path) / "made-up"
    turns = make_build(Layout(root), Size(samples=SAMPLES))
    say(f"\n{turns:,} turns", f"{'':10} {'seconds':>8} {'processor':>10} {'GiB':>6}")
    steps = {"metrics": (measure_metrics, [str(root)])} | {
        each: (call_command, [str(root), each]) for each in ("check", "report")
    }
    taken = {}
    for name, (does, arguments) in steps.items():
        taken[name] = in_a_process(does, arguments)
        say(f"{name:10} {taken[name][0]:8.1f} {taken[name][1]:10.1f} {taken[name][2]:6.2f}")
    seconds, processor = (sum(each[place] for each in taken.values()) for place in (0, 1))
    say(f"{'all':10} {seconds:8.1f} {processor:10.1f} {max(each[2] for each in taken.values()):6.2f}")
    say(pages_of(root / "reports"))
    if not FOLDER:
        shutil.rmtree(root)


def pages_of(reports: Path) -> str:
    """What the report's page weighs, and the pages of transcripts beside it."""
    page = sum(file.stat().st_size for file in reports.rglob("index.html"))
    return f"the page: {page / 1e6:.2f} MB, transcripts beside it {(size_of(reports) - page) / 1e6:.2f} MB"
