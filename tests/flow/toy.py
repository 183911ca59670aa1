"""`colloquy` over two toy stages: `python -m tests.flow.toy run --profile test`.

The stages take the names of two real ones, for a stage needs a section of the settings. Their model answers
with `tests.flow.toy_curation.task:answer`, which is down for some or all rows as TOY_DOWN says.
"""

from __future__ import annotations

from dataclasses import replace

from flows import chain
from flows.chain.options import RunOptions
from flows.chain.stages import MODULES as REAL
from flows.cli.main import main
from tasks.foundation.run.context import Workspace

MODULES = {"scenes": "tests.flow.toy_scenes.task", "curation": "tests.flow.toy_curation.task"}
ANSWER = "tests.flow.toy_curation.task:answer"


def install() -> None:
    """Make the toys the whole chain of this process, and their model the arbiter's."""
    REAL.clear()
    REAL.update(MODULES)
    open_workspace = chain.open_workspace

    def with_toy(options: RunOptions) -> Workspace:
        workspace = open_workspace(options)
        workspace.models = {**workspace.models, "scripted-c": replace(workspace.models["scripted-c"], name=ANSWER)}
        return workspace

    chain.open_workspace = with_toy


if __name__ == "__main__":
    install()
    main()
