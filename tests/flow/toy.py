"""`colloquy` over two toy stages: `python -m tests.flow.toy run --profile test`.

The stages take the names of two real ones, for a stage needs a section of the settings. Their model answers
with `tests.flow.toy_curation.task:answer`, which is down for some or all rows as TOY_DOWN says.
"""

from __future__ import annotations

from dataclasses import replace

from flows import chain, cli
from tasks.foundation.llm.models import Models, load_models
from tasks.foundation.run import workspace

MODULES = {"scenes": "tests.flow.toy_scenes.task", "curation": "tests.flow.toy_curation.task"}


def install() -> None:
    """Make the toys the whole chain of this process."""
    chain.MODULES.clear()
    chain.MODULES.update(MODULES)
    workspace.load_models = toy_models  # type: ignore[assignment]


def toy_models() -> Models:
    models = load_models()
    models["scripted-c"] = replace(models["scripted-c"], name="tests.flow.toy_curation.task:answer")
    return models


if __name__ == "__main__":
    install()
    cli.main()
