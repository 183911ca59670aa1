"""Hub datasets, read from a hub on this machine: streamed, pinned, and no further than needed."""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.foundation import ROOT
from tasks.foundation.errors import SourceError
from tasks.foundation.store.commits import Commit, commits_of
from tasks.foundation.store.layout import Layout
from tests.fakes.hub_server import COMMIT, HubServer, serving
from tests.made_up_rows import personamem_rows
from tests.unit.hub_runs import run
from tests.unit.test_personas_readers import NEMOTRON as PERSONA
from tests.unit.test_scenes_stage import SODA

NEMOTRON = "{pool: p, reader: nemotron, hub: nvidia/Nemotron-Personas-USA, revision: main, licence: CC-BY-4.0}"
PERSONAMEM = "{pool: m, reader: personamem, hub: bowen-upenn/PersonaMem-v2, revision: main, split: val_text}"
LCCC = "{corpus: lccc, reader: lccc, hub: silver/lccc, revision: main, split: train, limit: 40, licence: MIT}"
SODA_VALIDATION = "{corpus: soda, reader: soda, hub: allenai/soda, revision: main, split: validation}"
README = """---
configs:
- config_name: default
  data_files:
  - split: val_text
    path: text/val.csv
---
"""


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four corpora in small, laid out as their repositories are."""
    folder = tmp_path_factory.mktemp("hub")
    nemotron = folder / "nvidia" / "Nemotron-Personas-USA" / "data"
    nemotron.mkdir(parents=True)
    for shard in range(3):
        rows = [PERSONA | {"uuid": f"{shard}-{row}", "persona": f"Person {shard} {row} waves"} for row in range(50)]
        pq.write_table(pa.Table.from_pylist(rows), nemotron / f"train-{shard:05d}-of-00003.parquet", row_group_size=10)
    personamem = folder / "bowen-upenn" / "PersonaMem-v2"
    (personamem / "text").mkdir(parents=True)
    (personamem / "README.md").write_text(README)
    queries = list(personamem_rows(6))
    with (personamem / "text" / "val.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(queries[0]))
        writer.writeheader()
        writer.writerows(queries)
    (personamem / "text" / "train.csv").write_text("persona_id,expanded_persona\n")
    soda = folder / "allenai" / "soda"
    soda.mkdir(parents=True)
    talks = [SODA | {"dialogue": [f"May I borrow {thing}?", "No.", "Please?"]} for thing in ("it", "them", "one")]
    pq.write_table(pa.Table.from_pylist(talks), soda / "validation.parquet")
    lccc = folder / "silver" / "lccc"
    lccc.mkdir(parents=True)
    draw = random.Random(1)
    talks = [["你 好 呀", "在 吗", f"第 {row} 次 了", "好 的"] for row in range(60)]
    noise = [[draw.randbytes(1000).hex()] for _ in range(4000)]
    lines = "\n".join(json.dumps(row) for row in [*talks, *noise])
    (lccc / "lccc_base_train.jsonl.gz").write_bytes(gzip.compress(lines.encode(), 1))
    return folder


@dataclass
class Hub:
    """The hub, and a process that runs stages against it."""

    server: HubServer
    process: subprocess.Popen[str]

    def run(self, folder: Path, stage: str, sources: str, build: str = "b") -> str:
        """The decision of the run, or its error."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(folder), stage, build, sources]) + "\n")
        self.process.stdin.flush()
        answer: str = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def started(datasets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with serving(datasets) as server:
        environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
        environment |= {"HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path_factory.mktemp("hf"))}
        command = [sys.executable, "-m", "tests.unit.hub_runs"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=environment, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
            yield Hub(server, process)
            process.terminate()


@pytest.fixture
def hub(started: Hub) -> Hub:
    started.server.commit = COMMIT
    started.server.asked.clear()
    started.server.sent.clear()
    return started


def commit(folder: Path, stage: str, build: str = "b") -> Commit:
    return commits_of(Layout(folder), build)[stage]


def test_a_branch_is_looked_up_once_a_build_and_its_commit_is_recorded(hub: Hub, tmp_path: Path) -> None:
    sources = f"[{NEMOTRON}, {PERSONAMEM}]"
    assert hub.run(tmp_path, "personas", sources) == "run"
    made = commit(tmp_path, "personas")
    assert made.accounting.n_in == 150 + 30
    nemotron, personamem = made.record["sources"]
    assert nemotron == {
        "name": "p",
        "licence": "CC-BY-4.0",
        "hub": "nvidia/Nemotron-Personas-USA",
        "revision": "main",
        "commit": COMMIT,
        "split": None,
    }
    assert (personamem["split"], personamem["commit"]) == ("val_text", COMMIT)
    assert hub.server.sent["text/val.csv"] and not hub.server.sent["text/train.csv"]

    hub.server.commit = "d" * 40
    hub.server.asked.clear()
    assert hub.run(tmp_path, "personas", sources) == "up to date", "a build stays at the commit that it began with"
    assert hub.server.asked == []


def test_a_build_goes_on_at_its_commit_after_the_branch_has_moved(hub: Hub, tmp_path: Path) -> None:
    assert hub.run(tmp_path, "personas", f"[{NEMOTRON[:-1]}, limit: 20}}]") == "run"
    hub.server.commit = "d" * 40
    hub.server.asked.clear()
    assert hub.run(tmp_path, "personas", f"[{NEMOTRON[:-1]}, limit: 30}}]") == "run"
    assert commit(tmp_path, "personas").record["sources"][0]["commit"] == COMMIT
    assert not [asked for asked in hub.server.asked if "/main" in asked or "d" * 40 in asked]
    assert hub.run(tmp_path, "personas", f"[{NEMOTRON[:-1]}, limit: 20}}]", build="c") == "run"
    assert commit(tmp_path, "personas", "c").record["sources"][0]["commit"] == "d" * 40


def test_a_limit_stops_the_stream_where_it_is_reached(hub: Hub, tmp_path: Path) -> None:
    assert hub.run(tmp_path, "personas", f"[{NEMOTRON[:-1]}, limit: 20}}]") == "run"
    assert commit(tmp_path, "personas").accounting.n_in == 20
    assert [name for name in hub.server.sent if name.endswith(".parquet")] == ["data/train-00000-of-00003.parquet"]


def test_lccc_is_streamed_from_its_gzip_file_and_soda_from_its_split(hub: Hub, tmp_path: Path, datasets: Path) -> None:
    assert hub.run(tmp_path, "scenes", f"[{LCCC}, {SODA_VALIDATION}]") == "run"
    made = commit(tmp_path, "scenes")
    assert (made.accounting.n_in, made.accounting.n_produced) == (40 + 3, 2)
    assert [source["licence"] for source in made.record["sources"]] == ["MIT", "unknown"]
    name = "lccc_base_train.jsonl.gz"
    whole = (datasets / "silver" / "lccc" / name).stat().st_size
    assert whole > 3 * 2**20 and hub.server.sent[name] < whole / 2


def test_a_dataset_that_is_not_there_is_told_with_the_way_around(hub: Hub, tmp_path: Path) -> None:
    told = hub.run(tmp_path, "personas", "[{pool: p, reader: nemotron, hub: nobody/nothing, revision: main}]")
    assert told.startswith("SourceError: hub dataset 'nobody/nothing' at main, its commit, cannot be read")
    assert "`path: FOLDER`" in told


async def test_a_hub_out_of_reach_stops_the_run_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(SourceError, match=r"127\.0\.0\.1 does not answer.*hf download nvidia/Nemotron-Personas-USA"):
        await run(tmp_path, "personas", "b", f"[{NEMOTRON}]")
    assert not (tmp_path / "store").exists()
