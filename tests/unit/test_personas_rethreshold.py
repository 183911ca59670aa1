"""What other thresholds would leave of a pool: from stored vectors only, as a run would decide."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from flows.cli import main as cli
from tasks.foundation.errors import StoreError
from tasks.foundation.texts import similarity
from tasks.foundation.texts.dedupe import deduplicate
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.word_encoder import WordEncoder
from tasks.personas.rethreshold import count_remaining, load_pool
from tests.unit.evaluation_build import Bench, persona

TEXTS = {
    "p1": "a b c d e f g h i j",
    "p2": "a b c d e f g h i x",  # 0.9 to the first
    "p3": "a b c d e f g y z x",  # 0.7 to the first, 0.8 to the second
    "p4": "k l m n o p q r s t",
    "p5": "k l m n o p q r s t",
}


class Words(Encoder):
    """Word counts instead of a model; says what it had to encode."""

    ran: list[str] = []  # noqa: RUF012

    dimensions = 384

    def _encode_new(self, texts: Sequence[str]) -> Iterator[tuple[Sequence[int], np.ndarray]]:
        self.ran.extend(texts)
        yield range(len(texts)), WordEncoder().encode(texts)

    def _make_alone(self, text: str) -> np.ndarray:
        self.ran.append(text)
        return WordEncoder().encode([text])[0]


@pytest.fixture
def words(tmp_path: Path) -> partial[Words]:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "config.json").write_text("{}")
    Words.ran.clear()
    return partial(Words, folder=weights)


def test_what_remains_is_what_a_run_at_that_threshold_keeps(tmp_path: Path, words: partial[Words]) -> None:
    encoder = words("any", tmp_path / "cache")
    ids, texts = list(TEXTS), list(TEXTS.values())
    vectors = encoder.encode(texts)
    for threshold in (0.5, 0.75, 0.85, 0.95):
        run = deduplicate(ids, texts, vectors, lambda i: encoder.encode_alone(texts[i]), threshold=threshold, seed=7)
        ran = len(Words.ran)
        pool = load_pool("p", len(ids), [list(TEXTS.items())[:2], list(TEXTS.items())[2:]], encoder)
        found = count_remaining(pool, threshold, 7, "exact")
        assert len(Words.ran) == ran
        assert found.n_kept == len(run.kept)
        assert found.n_same_text == 1
        assert found.n_kept + found.n_same_text + found.n_close == found.n_candidates == 5
    assert found.n_close == 0


def test_a_vector_of_the_text_alone_goes_before_the_stored_one(tmp_path: Path, words: partial[Words]) -> None:
    encoder = words("any", tmp_path / "cache")
    encoder.encode(["a b", "c d"])
    alone = encoder.encode_alone("c d")
    pool = load_pool("p", 2, [[("p1", "a b"), ("p2", "c d")]], encoder)
    assert set(pool.alone) == {1}
    assert (pool.exact_vector(1) == alone).all()
    assert np.linalg.norm(pool.exact_vector(0)) == pytest.approx(1)


def test_a_persona_without_a_stored_vector_is_named(tmp_path: Path, words: partial[Words]) -> None:
    encoder = words("any", tmp_path / "cache")
    encoder.encode(["a b"])
    with pytest.raises(StoreError, match=r"embedding of each of its 2 personas, found none of 1, for example 'p2'"):
        load_pool("p", 2, [[("p1", "a b")], [("p2", "never seen")]], encoder)
    assert Words.ran == ["a b"]


async def test_the_command_counts_each_pool_and_leaves_the_build_alone(
    tmp_path: Path, words: partial[Words], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(similarity, "Encoder", Words)
    monkeypatch.setenv("COLLOQUY_ARTIFACTS", str(tmp_path / "artifacts"))
    bench = Bench(tmp_path, (f"encoder.en={words.keywords['folder']}",))
    rows = [persona(n).model_copy(update={"description": text}) for n, text in enumerate(TEXTS.values())]
    rows.append(persona(9).model_copy(update={"description": "护士", "language": "zh"}))
    await bench.give("personas", {"persona_candidates": rows})
    files = sorted((tmp_path / "artifacts").rglob("*.parquet"))

    def colloquy(*arguments: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["colloquy", "personas", "rethreshold", *arguments])
        with pytest.raises(SystemExit):
            cli.main()
        written = capsys.readouterr()
        return written.out, written.err

    assert "found none of 5" in colloquy("0.95", "--build", "b1")[1]
    bench.workspace().encoder.encode(list(TEXTS.values()))
    out = colloquy("0.95", "0.5", "--build", "b1")[0]
    counts = [line.split()[:6] for line in out.splitlines() if line.split()[:1] == ["p"]]
    assert [line[1:5] for line in counts] == [["0.5", "5", "1", "2"], ["0.85", "5", "1", "1"], ["0.95", "5", "1", "0"]]
    assert [line[5] for line in counts] == ["2", "3", "4"]
    assert "p: 1 in Chinese are not counted, texts are compared by their characters" in " ".join(out.split())
    assert sorted((tmp_path / "artifacts").rglob("*.parquet")) == files
    assert "expected thresholds above 0 and up to 1, found 1.5" in colloquy("1.5")[1]
    assert "build 'nix' does not exist" in colloquy("0.9", "--build", "nix")[1]
