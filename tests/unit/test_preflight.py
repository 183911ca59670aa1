"""What is refused before a run is what the run itself would be refused for, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flows.chain import plan as planning
from flows.chain import status
from tasks.foundation.errors import ConfigError
from tests.unit.evaluation_build import Bench, conversation, persona, seed

SETTINGS = (
    "conversation.targets=[scripted-b]",
    "judging.judges=[scripted-a]",
    "conversation.family_waiver=a test of it",
)


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(b"PAR1")], ids=["gone", "cut short"])
@pytest.mark.parametrize("check", [status.check_all, planning.check], ids=["run", "plan"])
async def test_rows_that_a_run_makes_again_are_not_looked_at_before(tmp_path: Path, spoil: Any, check: Any) -> None:
    build = Bench(tmp_path, SETTINGS)
    await build.give("personas", {"persona_candidates": [persona()]})
    await build.give("chatseeds", {"chat_seeds": [seed()]})
    held, turns = conversation("first", ["Wait until spring."], target="scripted-b")
    await build.give("conversation", {"conversations": [held], "conversation_turns": turns}, "scripted-b")
    workspace = build.workspace()
    check(workspace, "b1", ("conversation", "judging"))
    for path in (workspace.layout.root / "store" / "conversations").rglob("*.parquet"):
        spoil(path)
    check(workspace, "b1", ("conversation", "judging"))
    with pytest.raises(ConfigError, match="family"):
        strict = build.workspace("conversation.family_waiver=null", "judging.judges=[scripted-b]")
        check(strict, "b1", ("conversation", "judging"))
