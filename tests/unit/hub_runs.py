"""Runs of the source stages against a hub, in a process of its own: the hub libraries read HF_ENDPOINT once.

Reads one run a line, ["<artifacts>", "<stage>", "<build>", "<sources as YAML>"], and answers each with the decision
that was taken or the error that stopped it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from tasks.foundation.errors import ColloquyError
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.store.layout import Layout
from tasks.foundation.texts.word_encoder import WordEncoder
from tasks.personas.task import STAGE as PERSONAS
from tasks.scenes.task import STAGE as SCENES

SMALL = ("personas.characters={en: 0, zh: 0}", "personas.pool_size=5", "scenes.sample={en: 1, zh: 1}")
STAGES = {"personas": PERSONAS, "scenes": SCENES}


async def run(artifacts: Path, stage: str, build: str, sources: str) -> str:
    workspace = Workspace.open("test", (*SMALL, f"{stage}.sources={sources}"), Layout(artifacts))
    workspace._encoder = WordEncoder()
    with StageRun.open(STAGES[stage], workspace, build) as opened:
        if not opened.up_to_date:
            opened.prepare()
            for shard in opened.shards:
                await opened.work(shard)
            opened.commit()
        await opened.close()
    workspace.close()
    return opened.decision


if __name__ == "__main__":
    for line in sys.stdin:
        folder, *rest = json.loads(line)
        try:
            answer = asyncio.run(run(Path(folder), *rest))
        except ColloquyError as error:
            answer = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), flush=True)
