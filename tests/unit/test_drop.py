"""A target or a judge taken out of a build, and brought back without a call."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.cli.builds import drop
from tasks.foundation.errors import BuildBusy, ConfigError, StoreError
from tasks.foundation.store.commits import commits_of
from tasks.foundation.store.locks import lock
from tasks.foundation.store.removing import drop_member
from tasks.judging.task import STAGE as JUDGING
from tests.unit.evaluation_build import Bench, Models, conversation, persona, seed, use

PLAYING = ("awareness", "interaction", "conversation")


@pytest.fixture
async def build(tmp_path: Path) -> Bench:
    """Two targets that have each had a conversation."""
    build = Bench(tmp_path)
    await build.give("personas", {"persona_candidates": [persona()]})
    await build.give("chatseeds", {"chat_seeds": [seed()]})
    for target in ("scripted-b", "scripted-c"):
        held, turns = conversation(f"of {target}", ["Wait until spring."], target=target)
        await build.give("conversation", {"conversations": [held], "conversation_turns": turns}, target)
    return build


def targets(build: Bench) -> list[str]:
    return [row["target"] for row in build.rows("select target from conversations order by target")]


async def test_a_dropped_target_is_no_longer_shown_and_the_other_stays(build: Bench) -> None:
    dropped = drop_member(build.workspace().layout, "b1", "scripted-c", PLAYING)
    assert [commit.run for commit in dropped] == ["conversation@scripted-c"]
    assert targets(build) == ["scripted-b"]
    parts = [part.path for commit in dropped for each in commit.tables.values() for part in each]
    assert parts and all((build.workspace().layout.root / path).exists() for path in parts)


async def test_a_dropped_judge_comes_back_without_a_call(build: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    models = Models()
    use(models, monkeypatch)
    settings = ("judging.judges=[scripted-a]", "conversation.family_waiver=a test of dropping")
    first = await build.run(JUDGING, "scripted-a", *settings)
    asked = len(models.calls)
    assert first is not None and asked
    drop_member(build.workspace().layout, "b1", "scripted-a", ("judging",))
    assert build.rows("select * from turn_judgements") == []
    again = await build.run(JUDGING, "scripted-a", *settings)
    assert again is not None and again.tables == first.tables
    assert len(models.calls) == asked


@pytest.mark.parametrize(
    ("name", "member", "says"),
    [
        (
            "b1",
            "nobody",
            "nothing of 'nobody' in awareness, interaction, conversation; expected one of: scripted-b, scripted-c",
        ),
        ("b2", "scripted-c", "build 'b2' does not exist; expected one of: b1"),
    ],
)
async def test_what_is_not_there_cannot_be_dropped(build: Bench, name: str, member: str, says: str) -> None:
    with pytest.raises(StoreError, match=says):
        drop_member(build.workspace().layout, name, member, PLAYING)


async def test_nothing_is_dropped_while_the_stage_runs(build: Bench) -> None:
    layout = build.workspace().layout
    with lock(layout.lock("b1", "conversation@scripted-c"), "its run", 0), pytest.raises(BuildBusy):
        drop_member(layout, "b1", "scripted-c", PLAYING)
    assert len(commits_of(layout, "b1")) == 4


async def test_the_command_says_what_went_and_what_is_late(
    build: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLLOQUY_ARTIFACTS", str(build.workspace().layout.root))
    drop(target="scripted-c", judge=None, build=None)
    out = capsys.readouterr().out
    assert "conversation@scripted-c  no longer shown: 1 conversations, 1 conversation_turns" in out
    assert "judging and metrics of build b1 still count it: `colloquy run --from judging --build b1`" in out


@pytest.mark.parametrize("aliases", [(None, None), ("a", "b")])
def test_the_command_takes_one_alias(aliases: tuple[str | None, str | None]) -> None:
    with pytest.raises(ConfigError, match="either --target ALIAS or --judge ALIAS"):
        drop(*aliases, build="b1")
