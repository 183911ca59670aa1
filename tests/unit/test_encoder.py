"""The encoder: its batches, windows, cache and errors, on a small real encoder and (where it is here) on MiniLM."""

from __future__ import annotations

import itertools
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation import ROOT
from tasks.foundation.errors import ConfigError, ModelUnavailable, StoreError
from tasks.foundation.texts import encoder as encoding
from tasks.foundation.texts.encoder import SLACK, Encoder, windows
from tasks.foundation.texts.encoder_folder import make_batches, read_dimensions, read_piece_limit
from tasks.foundation.texts.vector_store import VectorStore
from tasks.foundation.weights import missing
from tests.fakes.encoders import DIMENSIONS, PIECES, write_encoder, write_multilingual

NAME = "all-minilm-l6-v2"
ENGLISH = "the person likes long walks as a nurse works every day of the week in an old town by the river"
CHINESE = "他在医院工作多年喜欢喝茶散步河边，也常去看望住在老城的父母。"
ARABIC = "يعمل في مستشفى صغير ويحب المشي الطويل وشرب الشاي"
MIXED = [text[:length] for length in (1, 4, 9, 17, 30, 200) for text in (ENGLISH * 3, CHINESE * 4, ARABIC * 4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("weights") / "small")


@pytest.fixture(scope="module")
def small(folder: Path) -> Encoder:
    return Encoder("small", folder=folder)


class CountingEncoder(Encoder):
    """Notes which texts it had to encode."""

    ran: list[str] = []  # noqa: RUF012

    def _encode_new(self, texts: Sequence[str]) -> Iterator[tuple[Sequence[int], np.ndarray]]:
        self.ran += texts
        return super()._encode_new(texts)

    def _make_alone(self, text: str) -> np.ndarray:
        self.ran.append(text)
        return super()._make_alone(text)


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    CountingEncoder.ran = []


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_are_those_of_sentence_transformers_whatever_the_pooling(tmp_path: Path, pooling: str) -> None:
    from sentence_transformers import SentenceTransformer

    folder = write_encoder(tmp_path / "weights", pooling=pooling)
    theirs = SentenceTransformer(str(folder), device="cpu").encode(MIXED, batch_size=4, normalize_embeddings=True)
    ours = Encoder("small", folder=folder).encode(MIXED)
    assert np.abs(ours @ ours.T - theirs @ theirs.T).max() < 1e-6
    assert np.ptp(ours @ ours.T) > 0.1, "vectors that are all alike would prove nothing"


def test_an_encoder_of_the_multilingual_kind_gives_the_vectors_of_sentence_transformers(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    folder = write_multilingual(tmp_path / "weights", [ENGLISH, CHINESE, ARABIC])
    model = SentenceTransformer(str(folder), device="cpu")
    encoder = Encoder("small", folder=folder)
    texts = [*MIXED, "unknown ☃ piece", "tabs\t and  spaces ", ""]
    theirs, ours = model.encode(texts, batch_size=4, normalize_embeddings=True), encoder.encode(texts)
    assert np.abs(ours @ ours.T - theirs @ theirs.T).max() < 1e-6
    assert np.ptp(ours @ ours.T) > 0.1, "vectors that are all alike would prove nothing"
    alone = np.array([encoder.encode_alone(text) for text in texts])
    assert np.abs(alone - theirs).max() < 1e-5
    assert encoder.count_pieces(texts) == [
        len(model.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts
    ]


@given(st.lists(st.integers(0, 300), max_size=60), st.integers(1, 600))
def test_every_text_is_in_one_batch_and_no_batch_passes_the_budget(lengths: list[int], budget: int) -> None:
    cut = list(make_batches(np.array(lengths, np.int64), budget))
    assert sorted(position for batch in cut for position in batch.tolist()) == list(range(len(lengths)))
    assert all(len(batch) == 1 or len(batch) * max(lengths[at] for at in batch) <= budget for batch in cut)


@given(st.integers(0, 3000), st.integers(8, 300))
def test_windows_overlap_and_leave_no_piece_unread(pieces: int, room: int) -> None:
    found = windows(pieces, room)
    assert set().union(*found) == set(range(pieces))
    assert all(len(window) <= room for window in found) and (len(found) == 1) == (pieces <= room)
    assert all(before.stop > after.start for before, after in itertools.pairwise(found))
    assert all(window.stop < pieces for window in found[:-1]), "no window is a part of the one before"


def test_a_short_text_has_the_same_vector_with_windows_and_without(small: Encoder) -> None:
    texts = [text for text in MIXED if small.count_pieces([text])[0] <= PIECES - 2]
    assert len(texts) > 10
    for text in texts:
        assert (small.with_long_texts("windows").encode([text]) == small.encode([text])).all()


def test_of_a_long_text_the_windows_are_averaged_by_their_pieces(small: Encoder) -> None:
    words = ["nurse", "river", "tea", "a", "old", "walks", "town"] * 12
    room = PIECES - 2
    spans = windows(len(words), room)
    assert [len(span) for span in spans] == [46, 46, 16] and small.count_pieces([" ".join(words)]) == [84]
    parts = [small.encode_alone(" ".join(words[span.start : span.stop])) for span in spans]
    mean = sum(len(span) * part for span, part in zip(spans, parts, strict=True)) / len(words)
    expected = mean / np.linalg.norm(mean)
    found = small.with_long_texts("windows")
    assert found.encode([" ".join(words)])[0] == pytest.approx(expected, abs=1e-6)
    assert found.encode_alone(" ".join(words)) == pytest.approx(expected, abs=1e-6)


def test_what_comes_after_the_pieces_read_counts_only_with_windows(small: Encoder) -> None:
    texts = ["a river " * 40 + end for end in ("nurse", "tea " * 30)]
    same, other = small.encode(texts), small.with_long_texts("windows").encode(texts)
    assert same[0] == pytest.approx(same[1], abs=1e-6) and other[0] @ other[1] < 0.999


def test_bfloat16_is_near_and_its_vectors_alone_are_those_of_float32(tmp_path: Path, folder: Path) -> None:
    exact, near = (Encoder("small", tmp_path, precision, folder=folder) for precision in ("float32", "bfloat16"))
    one, other = exact.encode(MIXED), near.encode(MIXED)
    assert 0 < np.abs(one @ one.T - other @ other.T).max() < SLACK["bfloat16"] == near.slack
    assert (near.encode_alone(ENGLISH) == exact.encode_alone(ENGLISH)).all()
    assert len(list(tmp_path.glob("vectors-*.sqlite"))) == 2


def test_each_distinct_text_is_encoded_once_and_rows_follow_the_texts(tmp_path: Path, folder: Path) -> None:
    encoder = CountingEncoder("any", tmp_path / "cache", folder=folder)
    vectors = encoder.encode(["aa", "b", "aa", "ccc"])
    assert sorted(encoder.ran) == ["aa", "b", "ccc"]
    assert vectors.shape == (4, DIMENSIONS) and vectors.dtype == np.float32
    assert (vectors[0] == vectors[2]).all() and not (vectors[0] == vectors[1]).all()


def test_a_text_that_comes_again_much_later_has_the_same_vector_without_any_cache(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "SORTED_AT_ONCE", 2)
    encoder = CountingEncoder("any", folder=folder)
    vectors = encoder.encode(["tea", "river", "tea " * 9, "tea", "river", "town"])
    assert encoder.ran == ["tea", "river", "tea " * 9, "town"]
    assert (vectors[0] == vectors[3]).all() and (vectors[1] == vectors[4]).all()


def test_a_second_process_encodes_nothing_that_is_stored(tmp_path: Path, folder: Path) -> None:
    first = CountingEncoder("any", tmp_path / "cache", folder=folder)
    stored = first.encode(["one", "three"])
    alone = first.encode_alone("one")
    assert first.ran == ["one", "three", "one"]
    second = CountingEncoder("any", tmp_path / "cache", folder=folder)
    assert (second.encode(["three", "one"]) == stored[::-1]).all()
    assert (second.encode_alone("one") == alone).all()
    assert first.ran == ["one", "three", "one"]


def test_vectors_are_found_by_text_and_by_way_of_encoding(tmp_path: Path, folder: Path) -> None:
    encoder = Encoder("any", tmp_path, folder=folder)
    vectors = encoder.encode(["one", "two"])
    alone = encoder.encode_alone("two")
    found = encoder.read_stored(["two", "never", "one", "two"])
    assert sorted(found) == [0, 2, 3] and (found[0] == vectors[1]).all() and (found[3] == vectors[1]).all()
    assert list(encoder.read_stored(["one", "two"], alone=True)) == [1]
    assert encoder.read_stored(["two"], alone=True)[0] == pytest.approx(alone, abs=1e-7)


@pytest.mark.parametrize("other", ["weights", "pooling", "precision", "windows"])
def test_vectors_made_in_another_way_are_not_reused(tmp_path: Path, folder: Path, other: str) -> None:
    CountingEncoder("any", tmp_path / "cache", folder=folder).encode(["one"])
    if other in ("weights", "pooling"):
        pooling = "cls" if other == "pooling" else "mean"
        copy = write_encoder(tmp_path / "other", pooling=pooling, seed=int(other == "weights"))
        second = CountingEncoder("any", tmp_path / "cache", folder=copy)
    elif other == "precision":
        second = CountingEncoder("any", tmp_path / "cache", "bfloat16", folder=folder)
    else:
        second = CountingEncoder("any", tmp_path / "cache", long_texts="windows", folder=folder)
    second.encode(["one"])
    assert second.ran == ["one", "one"]


def test_a_damaged_cache_is_put_aside_and_made_again(tmp_path: Path, folder: Path) -> None:
    first = CountingEncoder("any", tmp_path / "cache", folder=folder)
    first.encode(["one"])
    (stored,) = (tmp_path / "cache").glob("*.sqlite")
    for extra in (tmp_path / "cache").glob("*.sqlite-*"):
        extra.unlink()
    stored.write_bytes(b"not a database, but long enough to be looked at" * 50)
    second = CountingEncoder("any", tmp_path / "cache", folder=folder)
    assert second.encode(["one"]).shape == (1, DIMENSIONS)
    assert second.ran == ["one", "one"]


def test_a_cache_damaged_within_says_which_file_to_delete(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    keys = [number.to_bytes(16, "big") for number in range(400)]
    with closing(VectorStore(path)) as store:
        store.write(keys, np.ones((400, 384), np.float32))
    whole = path.read_bytes()
    path.write_bytes(whole[:20_000] + b"\xff" * 40_000 + whole[60_000:])
    with (
        closing(VectorStore(path)) as store,
        pytest.raises(StoreError, match=r"vectors\.sqlite cannot be read.*delete it"),
    ):
        list(store.read(keys))


def test_vectors_can_be_written_straight_to_a_file(tmp_path: Path, small: Encoder) -> None:
    out = np.lib.format.open_memmap(tmp_path / "v.npy", "w+", np.float32, (len(MIXED), DIMENSIONS))
    assert small.encode(MIXED, out=out) is out
    assert (np.load(tmp_path / "v.npy") == small.encode(MIXED)).all()


@pytest.mark.parametrize("out", [np.empty((2, DIMENSIONS)), np.empty((1, DIMENSIONS), np.float32)])
def test_an_array_that_does_not_fit_is_refused(small: Encoder, out: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"expected an array float32 \(2, 32\) to encode into, found float"):
        small.encode(["a", "b"], out=out)


def test_no_texts_give_no_rows(small: Encoder) -> None:
    assert small.encode([]).shape == (0, DIMENSIONS)


HOSTILE = ["", " \n\t", "\0\0", "tea \0 river", "\ud800", "a\udfffb", "\U0010ffff", "river " * 170_000, "x" * 2**20]


@pytest.mark.parametrize("long_texts", ["truncate", "windows"])
def test_any_text_at_all_has_a_unit_vector(small: Encoder, long_texts: Any) -> None:
    vectors = small.with_long_texts(long_texts).encode(HOSTILE)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert small.encode_alone("a\udfffb") == pytest.approx(small.encode_alone("a\ufffdb"))


def test_missing_weights_are_told_with_the_command_that_gets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLOQUY_MODELS_DIR", str(tmp_path))
    uses = (
        lambda e: e.encode(["text"]),
        lambda e: e.fingerprint,
        lambda e: e.count_pieces(["text"]),
        lambda e: e.dimensions,
        lambda e: e.with_long_texts("windows").encode_alone("text"),
    )
    for use in uses:
        with pytest.raises(ModelUnavailable, match=f"colloquy models pull {NAME}"):
            use(Encoder(NAME, tmp_path / "cache"))


def test_a_folder_says_how_long_its_vectors_are_and_how_many_pieces_it_reads(tmp_path: Path, folder: Path) -> None:
    assert (read_dimensions(folder), read_piece_limit(folder)) == (DIMENSIONS, PIECES)
    copy = tmp_path / "dense"
    shutil.copytree(folder, copy)
    modules = json.loads((copy / "modules.json").read_text())
    (copy / "modules.json").write_text(json.dumps([*modules, {"path": "2_Dense"}]))
    (copy / "2_Dense").mkdir()
    (copy / "2_Dense" / "config.json").write_text('{"in_features": 32, "out_features": 8}')
    (copy / "sentence_bert_config.json").write_text('{"max_seq_length": 8192}')
    assert (read_dimensions(copy), read_piece_limit(copy)) == (8, 256)


def test_a_folder_that_holds_no_encoder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Expected a sentence-transformers encoder in .*: its config.json names no"):
        read_dimensions(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigError, match="Expected JSON in"):
        read_dimensions(tmp_path)


def test_importing_the_encoder_does_not_import_torch() -> None:
    code = (
        "import sys, tasks.foundation.texts.encoder; print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
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
def test_cosines_of_minilm_are_those_of_sentence_transformers(minilm: Encoder) -> None:
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(minilm.weights_folder), device="cpu").encode(
        MIXED, batch_size=4, normalize_embeddings=True
    )
    ours = minilm.encode(MIXED)
    assert np.abs(ours @ ours.T - theirs @ theirs.T).max() < 1e-6


@pytest.mark.live
def test_a_text_encoded_alone_differs_from_its_batch_by_less_than_the_slack(minilm: Encoder) -> None:
    texts = [f"A person of {n} years who likes {'long walks and ' * n}tea." for n in range(1, 40)]
    together = minilm.encode(texts)
    alone = np.stack([minilm.encode_alone(text) for text in texts])
    assert np.abs(together @ together.T - alone @ alone.T).max() < 1e-5


@pytest.mark.live
def test_word_pieces_are_counted_beyond_what_the_encoder_reads(minilm: Encoder) -> None:
    assert minilm.count_pieces(["hello world", "word " * 700, ""]) == [2, 700, 0]
