"""The chain over rows of the real sources, on scripted models: every row accounted for, Chinese readable."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from flows import chain
from flows.chain.options import RunOptions
from tasks.foundation import weights
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.store.commits import Commit
from tasks.foundation.store.views import open_views

pytestmark = pytest.mark.flow

SPACED = re.compile(r"[\u4e00-\u9fff] [\u4e00-\u9fff]")


def sources(folder: Path) -> list[str]:
    def persona(pool: str, reader: str, file: str) -> dict[str, str]:
        return {"pool": pool, "reader": reader, "path": str(folder / file)}

    def corpus(name: str, reader: str, file: str) -> dict[str, str]:
        return {"corpus": name, "reader": reader, "path": str(folder / file)}

    personas = [
        persona("nemotron_v1", "nemotron", "nemotron_personas_v1_row.json"),
        persona("nemotron_extended", "nemotron", "nemotron_ngc_extended.jsonl"),
        persona("personamem_personas", "personamem", "personamem_v2_personas.jsonl"),
        persona("personamem_row", "personamem", "personamem_v2_row521.json"),
    ]
    scenes = [
        corpus("soda", "soda", "soda.jsonl"),
        corpus("lccc", "lccc", "lccc_toy.jsonl"),
        corpus("dailydialog", "jsonl", "dailydialog_val.jsonl"),
    ]
    return [f"personas.sources={json.dumps(personas)}", f"scenes.sources={json.dumps(scenes)}"]


async def run_all(options: RunOptions, build: str) -> dict[str, Commit]:
    """Every stage of the chain in this process, without Prefect."""
    workspace = chain.open_workspace(options)
    commits = {}
    try:
        for stage in chain.chain():
            for member in stage.members(workspace.settings):
                with StageRun.open(stage, workspace, build, member) as run:
                    run.prepare()
                    shards = run.shards
                    while shards:
                        for shard in shards:
                            await run.work(shard)
                        shards = run.draw_on()
                    commits[run.name] = run.commit()
                    await run.close()
    finally:
        workspace.close()
    return commits


def test_real_rows_go_through_the_whole_chain_and_none_is_lost(real_rows: Path) -> None:
    if weights.missing("all-minilm-l6-v2"):
        pytest.skip("the personas stage needs the encoder: colloquy models pull --demo")
    settings = [*sources(real_rows), "dialogues.max_failure_rate=1", "scenes.sample={en: 20, zh: 20}"]
    options = RunOptions(profile="test", build="real", set=settings)
    commits = asyncio.run(run_all(options, "real"))
    personas, scenes = commits["personas"].accounting, commits["scenes"].accounting
    # 1 + 3 + 5 + 1 persona rows and 12 characters; 5 SODA + 300 LCCC + 200 DailyDialog rows
    assert (personas.n_in, personas.n_produced, personas.n_failed) == (22, 22, 0)
    assert scenes.n_in == 505 and scenes.n_failed == 0
    for name, commit in commits.items():
        commit.accounting.check(name)
    with open_views(chain.open_workspace(options).layout) as connection:
        texts = connection.execute(
            "select turn.text from (select unnest(turns) as turn from seed_dialogues where language = 'zh')"
        ).fetchall()
        pools = connection.execute("select pool, count(*) from persona_pool group by all order by all").fetchall()
        described = connection.execute("select min(length(description)) from persona_candidates").fetchone()
    assert len(texts) > 500 and not [text for (text,) in texts if SPACED.search(text)]
    assert pools == [("nemotron_extended", 3), ("nemotron_v1", 1), ("personamem_personas", 5), ("personamem_row", 1)]
    assert described is not None and described[0] > 200
