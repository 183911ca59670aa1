"""kill -9 in the middle: the same command goes on, nothing is asked for twice, the rows are the same."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from flows import chain
from tests.fakes.encoders import write_encoder
from tests.flow.conftest import Colloquy
from tests.flow.warm import Parent

pytestmark = pytest.mark.flow

QUESTIONS = 64


@pytest.fixture
def whole(new_toy: Callable[[str], Colloquy]) -> dict[str, str]:
    """The tables of a run that nobody interrupted."""
    toy = new_toy("whole")
    assert toy.run().returncode == 0
    return toy.hashes()


def test_a_run_killed_again_and_again_ends_with_the_same_rows(toy: Colloquy, whole: dict[str, str]) -> None:
    for replies in (1, 20, 45):
        toy.end_after(replies, signal.SIGKILL)
        assert "curation" not in toy.commits()
    kept = len(toy.replies())
    toy.forget()
    ended = toy.run()
    assert ended.returncode == 0, ended.stderr
    assert len(toy.asked) == len(set(toy.asked)) == QUESTIONS - kept
    assert toy.hashes() == whole


def test_another_shard_size_after_the_kill_changes_nothing(toy: Colloquy, whole: dict[str, str]) -> None:
    toy.end_after(25, signal.SIGKILL)
    kept = len(toy.replies())
    toy.forget()
    ended = toy.run("--set", "curation.shard_rows=3", "--set", "run.concurrent_shards=1")
    assert ended.returncode == 0, ended.stderr
    assert len(toy.asked) == QUESTIONS - kept
    assert toy.hashes() == whole


@pytest.fixture
def real_chain(tmp_path: Path) -> Iterator[Callable[[str], Colloquy]]:
    """Makes the real chain on scripted models and a small encoder, without Prefect, in a folder of its own."""
    settings = (
        *("dialogues.max_failure_rate=1", "run.rows_in_flight=2", "run.concurrent_shards=2"),
        f"encoder.en={write_encoder(tmp_path / 'encoder')}",
    )

    with closing(Parent(os.environ, ("tests.whole_stage", "flows.chain", "sentence_transformers"))) as parent:

        def new(name: str) -> Colloquy:
            (tmp_path / name).mkdir()
            return Colloquy(tmp_path / name, "tests.whole_stage", {}, settings, parent)

        yield new


def test_the_chain_killed_in_the_middle_of_every_llm_stage_ends_with_the_same_rows(
    real_chain: Callable[[str], Colloquy],
) -> None:
    whole, killed = real_chain("whole"), real_chain("killed")
    assert whole.run().returncode == 0
    for point in middles(replies_by_stage(whole)):
        killed.end_after(point, signal.SIGKILL)
    ended = killed.run()
    assert ended.returncode == 0, ended.stderr
    assert killed.hashes() == whole.hashes()
    assert killed.replies() == whole.replies()
    assert paid(killed) == paid(whole)


def middles(replies: Mapping[str, int]) -> list[int]:
    """How many replies there are in all when each stage has half of its own."""
    points, before = [], 0
    for name in chain.names():
        if replies.get(name, 0) > 1:
            points.append(before + replies[name] // 2)
            before += replies[name]
    return points


def replies_by_stage(of: Colloquy) -> dict[str, int]:
    with sqlite3.connect(of.layout.cache / "replies.sqlite") as connection:
        return dict(connection.execute("select stage, count(*) from replies group by stage"))


def paid(of: Colloquy) -> dict[str, int]:
    """Calls paid for by each stage, as its commit says: a killed run's are in it, and none is in it twice."""
    return {stage: commit.usage["calls"] for stage, commit in of.commits().items()}
