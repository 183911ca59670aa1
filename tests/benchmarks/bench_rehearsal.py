"""The papers' profiles from their first row to the report, against an endpoint of this machine that takes 50 ms.

COLLOQUY_BENCH_EYT=0.02        eyt-paper: the share of its 100 seeds a pool (1: all 3,400 conversations)
COLLOQUY_BENCH_DEMO=0.0005     demo-paper: the share of its 2.6 million seeds and 200,000 characters
COLLOQUY_BENCH_DIALOGUES_SHARE=0.01   demo-paper: the share of its pairings, dialogues, items and episodes
COLLOQUY_BENCH_FOLDER=…        where the builds stay; else a temporary folder

Sources are rows made up in the schemas of the real ones. Every model of the profile is asked as it stands there, but at
the stub (tests/fakes/schema_server.py), with a schema, and without limits of requests and tokens. Each run is `colloquy
run` in a process of its own; what is shown of a stage is what its observer sees. Then the same command again, `colloquy
check`, `colloquy report`, and a second build from the reply cache.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.foundation import CONFIGS, ROOT
from tasks.foundation.llm.models import ModelSpec, load_models
from tasks.foundation.settings.strict_yaml import load_yaml
from tests.fakes.schema_server import endpoint
from tests.made_up_dialogues import make_lccc, make_soda
from tests.made_up_rows import make_nemotron, personamem_rows

EYT = float(os.environ.get("COLLOQUY_BENCH_EYT", "0.02"))
DEMO = float(os.environ.get("COLLOQUY_BENCH_DEMO", "0.0005"))
DIALOGUES = float(os.environ.get("COLLOQUY_BENCH_DIALOGUES_SHARE", "0.01"))
FOLDER = os.environ.get("COLLOQUY_BENCH_FOLDER")
PREFIX = "stub-"
KEPT = ("name", "family", "access", "thinking", "context_tokens", "supports_seed", "sends_temperature", "extra_body")
"""Of a model's entry: what it is, not where and how fast it is asked."""
AT_ONCE = "tests.fakes.schema_server:answer_at_once"
IN_FLIGHT = 256
PRICES = {"input_per_million": 1.0, "output_per_million": 2.0}
MARGIN = 1.3
"""So many times as many rows in the sources as are wanted of them."""


class Watch:
    """An observer of stages: when each came into each phase, and what the process had used by then."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self._at: tuple[str, str] = ("", "")

    def changed(self, progress: Any) -> None:
        if (progress.stage, progress.phase) != self._at:
            self._at = (progress.stage, progress.phase)
            self.note(progress.stage, progress.phase, progress.calls + progress.cached)

    def finished(self, result: Any) -> None:
        names = ("stage", "n_in", "n_produced", "n_filtered", "n_failed", "calls", "from_cache", "seconds")
        self.results.append({name: getattr(result, name) for name in names} | {"planned": result.planned_calls})
        self.note(result.stage, "ended", result.calls + result.from_cache)

    def note(self, stage: str, phase: str, calls: int) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        self.rows.append(
            {
                "stage": stage,
                "phase": phase,
                "calls": calls,
                "at": time.monotonic(),
                "processor": used.ru_utime + used.ru_stime,
                "memory": memory_gib("VmRSS"),
                "peak": memory_gib("VmHWM"),
            }
        )


def memory_gib(which: str) -> float:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{which}:"))
    return int(line.split()[1]) / 2**20


def command(report: str, *arguments: str) -> None:
    """A command of colloquy in this process, with a watch on its stages; what it saw goes to the file `report`."""
    from flows.chain.results import OBSERVERS
    from flows.cli.main import main

    watch = Watch()
    OBSERVERS.append(watch)
    sys.argv = ["colloquy", *arguments]
    began, load = time.monotonic(), os.getloadavg()[0]
    code: Any = 0
    try:
        main()
    except SystemExit as ending:
        code = ending.code
    finally:
        told = {
            "seconds": time.monotonic() - began,
            "processor": sum(resource.getrusage(resource.RUSAGE_SELF)[:2]),
            "load": (load, os.getloadavg()[0]),
            "peak": memory_gib("VmHWM"),
            "phases": watch.rows,
            "results": watch.results,
        }
        Path(report).write_text(json.dumps(told), encoding="utf-8")
    sys.exit(code)


class Rehearsal:
    """A profile of ours in a folder of its own, with every model at the stub's `url`, or, without one, answered in this
    process by the stub's own answers."""

    def __init__(self, folder: Path, url: str | None, profile: str, changes: dict[str, dict[str, Any]]) -> None:
        self.folder = folder
        self.profile = folder / f"{profile}.yaml"
        self.artifacts = folder / "artifacts"
        self.artifacts.mkdir(parents=True, exist_ok=True)
        models = {f"{PREFIX}{spec.alias}": entry_at(url, spec) for spec in load_models().values()}
        (self.artifacts / "models.yaml").write_text(yaml.safe_dump({"models": models}), encoding="utf-8")
        settings = renamed(load_yaml((CONFIGS / "profiles" / f"{profile}.yaml").read_text(encoding="utf-8")))
        for section, given in changes.items():
            settings[section] = {**settings.get(section, {}), **given}
        self.profile.write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")

    def __call__(self, *arguments: str) -> dict[str, Any]:
        """What a command took, in a process of its own."""
        told, log = self.folder / "told.json", self.folder / "log.txt"
        program = "import sys; from tests.benchmarks.bench_rehearsal import command; command(*sys.argv[1:])"
        environment = {
            **os.environ,
            "COLLOQUY_ARTIFACTS": str(self.artifacts),
            "PREFECT_HOME": str(self.folder / "prefect"),
            "COLUMNS": "200",
        }
        with log.open("a", encoding="utf-8") as out:
            line = [sys.executable, "-c", program, str(told), *arguments]
            done = subprocess.run(line, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, f"{arguments} ended with {done.returncode}:\n{log.read_text()[-3000:]}"
        found: dict[str, Any] = json.loads(told.read_text())
        return found

    def run(self, build: str) -> dict[str, Any]:
        return self("run", "--profile", str(self.profile), "--build", build, "--quiet")

    def said(self) -> str:
        return (self.folder / "log.txt").read_text(encoding="utf-8")


def entry_at(url: str | None, spec: ModelSpec) -> dict[str, Any]:
    """The same model at the stub: held to a schema, not retired, with a price."""
    held = {each.name: getattr(spec, each.name) for each in fields(spec) if each.name in KEPT}
    if spec.thinking_pair:
        held["thinking_pair"] = f"{PREFIX}{spec.thinking_pair}"
    body = {} if spec.kind.local else dict(spec.extra_body)
    at = {"provider": "openai", "base_url": url} if url else {"provider": "scripted", "name": AT_ONCE}
    return {**held, "extra_body": body, **at, "max_in_flight": IN_FLIGHT, "prices": PRICES}


def renamed(settings: Any) -> Any:
    """Settings whose models are those at the stub."""
    if isinstance(settings, dict):
        return {key: renamed(value) for key, value in settings.items()}
    if isinstance(settings, list):
        return [renamed(value) for value in settings]
    return f"{PREFIX}{settings}" if settings in aliases() else settings


@cache
def aliases() -> frozenset[str]:
    return frozenset(load_models())


def persona_sources(folder: Path, rows: int) -> list[dict[str, Any]]:
    """Two pools with so many rows each."""
    make_nemotron(folder / "nemotron", rows)
    with (folder / "personamem.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in personamem_rows(rows))
    given = {"licence": "made up"}
    return [
        {"pool": "nemotron_usa", "reader": "nemotron", "path": str(folder / "nemotron"), **given},
        {"pool": "personamem_v2", "reader": "personamem", "path": str(folder / "personamem.jsonl"), **given},
    ]


def scene_sources(folder: Path, rows: int) -> list[dict[str, Any]]:
    make_soda(folder / "soda", rows)
    make_lccc(folder / "lccc.jsonl.gz", 2 * rows)
    given = {"licence": "made up"}
    return [
        {"corpus": "soda", "reader": "soda", "path": str(folder / "soda"), **given},
        {"corpus": "lccc", "reader": "lccc", "path": str(folder / "lccc.jsonl.gz"), **given},
    ]


def of_eyt_paper(folder: Path) -> dict[str, dict[str, Any]]:
    pool = max(2, round(500 * EYT))
    return {
        "personas": {"sources": persona_sources(folder, round(pool * MARGIN) + 20), "pool_size": pool},
        "chatseeds": {"per_pool": max(2, round(100 * EYT))},
    }


def of_demo_paper(folder: Path) -> dict[str, dict[str, Any]]:
    def both(n: float) -> dict[str, int]:
        return {"en": max(1, round(n)), "zh": max(1, round(n))}

    seeds, pool = round(1_300_000 * DEMO), max(2, round(500 * DIALOGUES))
    return {
        "personas": {
            "sources": persona_sources(folder, round(pool * MARGIN) + 20),
            "pool_size": pool,
            "characters": both(100_000 * DEMO),
        },
        "scenes": {"sources": scene_sources(folder, round(seeds * MARGIN) + 100), "sample": both(seeds)},
        "conflicts": {"pairings": both(12_000 * DIALOGUES), "select": max(2, round(1800 * DIALOGUES))},
        "curation": {"items_per_task": both(500 * DIALOGUES), "episodes": both(500 * DIALOGUES), "if_none": "keep 1"},
    }


@pytest.mark.parametrize(("profile", "changes"), [("eyt-paper", of_eyt_paper), ("demo-paper", of_demo_paper)])
def test_a_paper_from_its_first_row_to_its_report(
    profile: str, changes: Callable[[Path], dict[str, dict[str, Any]]], tmp_path: Path
) -> None:
    folder = Path(FOLDER or tmp_path) / profile
    folder.mkdir(parents=True, exist_ok=True)
    with endpoint() as (url, server):
        rehearsal = Rehearsal(folder, url, profile, changes(folder))
        rehearsal("plan", "--profile", str(rehearsal.profile), "--build", "first")
        say(f"\n{profile}", *(line for line in rehearsal.said().splitlines() if line.startswith("Expected")))
        before = processor_seconds(server)
        first = rehearsal.run("first")
        say(*stages_of(first), f"the stub used {processor_seconds(server) - before:.0f} s of processor")
        say(files_of(rehearsal.artifacts), f"Prefect's records: {size_of(folder / 'prefect') / 1e6:.0f} MB")
        again = rehearsal.run("first")
        say(f"the same command again: {again['seconds']:.1f} s")
        for one in ("check", "report"):
            told = rehearsal(one, "--build", "first")
            say(f"colloquy {one}: {told['seconds']:.1f} s, peak {told['peak']:.2f} GiB")
        replayed = rehearsal.run("second")
        say("a second build, from the reply cache", *stages_of(replayed))
    assert not again["results"]
    assert sum(each["calls"] for each in first["results"]) and not sum(each["calls"] for each in replayed["results"])
    for each in first["results"]:
        assert each["n_in"] == each["n_produced"] + each["n_filtered"] + each["n_failed"]
    if not FOLDER:
        shutil.rmtree(folder)


def say(*lines: str) -> None:
    """At once: a full rehearsal takes hours."""
    print(*lines, sep="\n", flush=True)


COLUMNS = {"rows": 9, "failed": 7, "calls": 9, "planned": 18, "calls/s": 9, "ms/call": 9}
COLUMNS |= {"prepare": 9, "work": 9, "commit": 9, "whole": 9, "GiB": 6, "peak": 6}


def stages_of(told: dict[str, Any]) -> Iterator[str]:
    """A line a stage (of one that fans out, its members together), and one for the whole run. `ms/call` is of processor
    time while rows are worked on, the rest by the clock; `GiB` is what the process held as the stage ended."""
    yield f"{'stage':<13}" + "".join(f"{name:>{width}}" for name, width in COLUMNS.items())
    for stage in dict.fromkeys(stage_of(each) for each in told["results"]):
        results = [each for each in told["results"] if stage_of(each) == stage]
        last = [row for row in told["phases"] if stage_of(row) == stage][-1]
        spent = spent_of(told["phases"], stage)
        work, processor = spent["working"]
        values = {
            "rows": f"{sum(each['n_in'] for each in results):,}",
            "failed": f"{sum(each['n_failed'] for each in results):,}",
            "prepare": f"{spent['preparing'][0]:.1f}",
            "work": f"{work:.1f}",
            "commit": f"{spent['committing'][0]:.1f}",
            "whole": f"{sum(each['seconds'] for each in results):.1f}",
            "GiB": f"{last['memory']:.2f}",
            "peak": f"{last['peak']:.2f}",
        }
        if calls := calls_of(results):
            low, high = (sum((each["planned"] or (0, 0))[end] for each in results) for end in (0, 1))
            values |= {"calls": f"{calls:,}", "planned": f"{low:,.0f}–{high:,.0f}"}
            values |= {"calls/s": f"{calls / work:.0f}", "ms/call": f"{1000 * processor / calls:.2f}"}
        yield f"{stage:<13}" + "".join(f"{values.get(name, ''):>{width}}" for name, width in COLUMNS.items())
    bought = sum(each["calls"] for each in told["results"])
    replayed, seconds = calls_of(told["results"]) - bought, told["seconds"]
    yield (
        f"{bought:,} calls and {replayed:,} replies from the cache in {seconds:,.0f} s "
        f"({(bought + replayed) / seconds:.0f}/s), peak {told['peak']:.2f} GiB; load of the machine "
        f"{told['load'][0]:.1f} at the beginning, {told['load'][1]:.1f} at the end"
    )


def calls_of(results: list[dict[str, Any]]) -> int:
    return sum(each["calls"] + each["from_cache"] for each in results)


def stage_of(row: dict[str, Any]) -> str:
    return str(row["stage"]).partition("@")[0]


def spent_of(phases: list[dict[str, Any]], stage: str) -> dict[str, tuple[float, float]]:
    """Seconds and processor seconds of a stage in each of its phases, all members together."""
    spent = {"preparing": (0.0, 0.0), "working": (0.0, 0.0), "committing": (0.0, 0.0), "drawing on": (0.0, 0.0)}
    for row, following in pairwise(phases):
        if row["stage"] == following["stage"] and stage_of(row) == stage and row["phase"] in spent:
            seconds, processor = spent[row["phase"]]
            spent[row["phase"]] = (
                seconds + following["at"] - row["at"],
                processor + following["processor"] - row["processor"],
            )
    return spent


def files_of(root: Path) -> str:
    """Files and gigabytes of each folder of the store."""
    folders = sorted(path for path in root.iterdir() if path.is_dir())
    counts = {path.name: sum(file.is_file() for file in path.rglob("*")) for path in folders}
    told = [f"{path.name} {counts[path.name]:,} files, {size_of(path) / 1e9:.2f} GB" for path in folders]
    return "; ".join([*told, f"all {size_of(root) / 1e9:.2f} GB"])


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def processor_seconds(process: int) -> float:
    used = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")
