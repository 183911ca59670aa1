"""A process of its own that asks rows in batch mode: `python -m tests.unit.batch_child FOLDER URL ROWS`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.fakes.batch_servers import KEY, OpenAIServer
from tests.unit.batch_runs import run, spec_of

if __name__ == "__main__":
    folder, url, rows = sys.argv[1:]
    os.environ["STUB_KEY"] = KEY
    asyncio.run(run(Path(folder), spec_of(OpenAIServer(url=url)), range(int(rows))))
