"""The encoder: its cache, its errors, and (where the weights are) its vectors."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.foundation.encoder import DIMENSIONS, Encoder
from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.settings import ROOT
from tasks.foundation.weights import missing

NAME = "all-minilm-l6-v2"


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A folder that looks like one of weights."""
    folder = tmp_path / "weights"
    folder.mkdir()
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        (folder / name).write_text(name)
    return folder


class CountingEncoder(Encoder):
    """Encodes without a model and notes which texts it had to encode."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.ran: list[str] = []

    def _run(self, texts: Sequence[str]) -> np.ndarray:
        self.ran += texts
        rows = [np.random.default_rng(len(text)).normal(size=DIMENSIONS) for text in texts]
        return np.stack([row / np.linalg.norm(row) for row in rows]).astype(np.float32)


def test_each_distinct_text_is_encoded_once_and_rows_follow_the_texts(tmp_path: Path, weights: Path) -> None:
    encoder = CountingEncoder("any", tmp_path / "cache", folder=weights)
    vectors = encoder.encode(["aa", "b", "aa", "ccc"])
    assert sorted(encoder.ran) == ["aa", "b", "ccc"]
    assert vectors.shape == (4, DIMENSIONS) and vectors.dtype == np.float32
    assert (vectors[0] == vectors[2]).all() and not (vectors[0] == vectors[1]).all()


def test_a_second_process_encodes_nothing_that_is_stored(tmp_path: Path, weights: Path) -> None:
    first = CountingEncoder("any", tmp_path / "cache", folder=weights)
    stored = first.encode(["one", "three"])
    alone = first.encode_alone("one")
    second = CountingEncoder("any", tmp_path / "cache", folder=weights)
    assert (second.encode(["three", "one"]) == stored[::-1]).all()
    assert (second.encode_alone("one") == alone).all()
    assert second.ran == []


def test_vectors_of_other_weights_are_not_reused(tmp_path: Path, weights: Path) -> None:
    CountingEncoder("any", tmp_path / "cache", folder=weights).encode(["one"])
    (weights / "model.safetensors").write_text("others")
    second = CountingEncoder("any", tmp_path / "cache", folder=weights)
    second.encode(["one"])
    assert second.ran == ["one"]


def test_a_damaged_cache_is_put_aside_and_made_again(tmp_path: Path, weights: Path) -> None:
    first = CountingEncoder("any", tmp_path / "cache", folder=weights)
    first.encode(["one"])
    (stored,) = (tmp_path / "cache").glob("*.sqlite")
    for extra in (tmp_path / "cache").glob("*.sqlite-*"):
        extra.unlink()
    stored.write_bytes(b"not a database, but long enough to be looked at" * 50)
    second = CountingEncoder("any", tmp_path / "cache", folder=weights)
    assert second.encode(["one"]).shape == (1, DIMENSIONS)
    assert second.ran == ["one"]


def test_progress_ends_with_all_texts_done(weights: Path) -> None:
    told: list[tuple[int, int]] = []
    encoder = CountingEncoder("any", folder=weights)
    encoder.encode(["a", "bb", "a"], progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2, 2)


def test_no_texts_give_no_rows(weights: Path) -> None:
    assert CountingEncoder("any", folder=weights).encode([]).shape == (0, DIMENSIONS)


def test_missing_weights_are_told_with_the_command_that_gets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLOQUY_MODELS_DIR", str(tmp_path))
    for use in (lambda e: e.encode(["text"]), lambda e: e.fingerprint, lambda e: e.count_pieces(["text"])):
        with pytest.raises(ModelUnavailable, match=f"colloquy models pull {NAME}"):
            use(Encoder(NAME, tmp_path / "cache"))


def test_importing_the_encoder_does_not_import_torch() -> None:
    code = "import sys, tasks.foundation.encoder; print([m for m in ('torch', 'transformers') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    if missing(NAME):
        pytest.skip("the encoder's weights are not on this machine")
    return Encoder(NAME)


@pytest.mark.live
def test_vectors_have_length_one_and_say_what_is_alike(minilm: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the encoder used the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    dog, puppy, tax = minilm.encode(["A dog barks.", "A puppy is barking.", "The tax form is due in April."])
    assert np.linalg.norm([dog, puppy, tax], axis=1) == pytest.approx(1.0, abs=1e-5)
    assert dog @ puppy > 0.7 > 0.3 > dog @ tax


@pytest.mark.live
def test_a_text_encoded_alone_differs_from_its_batch_by_less_than_the_slack(minilm: Encoder) -> None:
    texts = [f"A person of {n} years who likes {'long walks and ' * n}tea." for n in range(1, 40)]
    together = minilm.encode(texts)
    alone = np.stack([minilm.encode_alone(text) for text in texts])
    assert np.abs(together @ together.T - alone @ alone.T).max() < 1e-5


@pytest.mark.live
def test_word_pieces_are_counted_beyond_what_the_encoder_reads(minilm: Encoder) -> None:
    assert minilm.count_pieces(["hello world", "word " * 700, ""]) == [2, 700, 0]
