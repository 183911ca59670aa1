"""What texts of a language are compared with: by settings, by what an encoder knows, by the weights that are here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation.errors import ConfigError, ModelUnavailable
from tasks.foundation.run.committing import record_of
from tasks.foundation.run.context import Workspace
from tasks.foundation.settings import load_settings
from tasks.foundation.store.layout import Layout
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.similarity import ByCharacters, describe, similarity_of
from tasks.foundation.texts.word_encoder import WordEncoder
from tasks.personas.task import STAGE
from tests.unit.source_stages import FakeContext, rows_of, write_jsonl
from tests.unit.test_near_texts import NURSE, TEACHER, changed

MULTILINGUAL = "paraphrase-multilingual-minilm-l12-v2"


@pytest.fixture(autouse=True)
def no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLOQUY_MODELS_DIR", str(tmp_path / "models"))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "config.json").write_text('{"hidden_size": 8}')
    return tmp_path / "own"


def test_chinese_goes_by_characters_where_the_weights_are_not_here() -> None:
    found = similarity_of("zh", load_settings("test"))
    assert isinstance(found, ByCharacters) and f"colloquy models pull {MULTILINGUAL}" in found.explanation
    assert describe(found) == {"method": "minhash", "why": found.why}


def test_chinese_goes_by_characters_where_the_settings_say_so() -> None:
    found = similarity_of("zh", load_settings("test", ["encoder.zh=null"]))
    assert isinstance(found, ByCharacters) and found.why == "encoder.zh is null"


def test_chinese_goes_by_the_encoder_that_is_here(own: Path) -> None:
    found = similarity_of("zh", load_settings("test", [f"encoder.zh={own}", "encoder.precision=bfloat16"]))
    assert isinstance(found, Encoder) and found.weights_folder == own and found.precision == "bfloat16"
    assert describe(found) == {"encoder": str(own), "precision": "bfloat16", "fingerprint": found.fingerprint[:16]}


def test_minilm_is_refused_for_chinese_texts() -> None:
    settings = load_settings("test", ["encoder.zh=all-minilm-l6-v2"])
    with pytest.raises(ConfigError, match="found 'all-minilm-l6-v2', which knows English only"):
        similarity_of("zh", settings)


def test_a_language_model_is_no_encoder() -> None:
    with pytest.raises(ConfigError, match="is no sentence encoder"):
        similarity_of("en", load_settings("test", ["encoder.en=smollm2-135m"]))


def test_english_never_falls_back() -> None:
    found = similarity_of("en", load_settings("test"))
    assert isinstance(found, Encoder)
    with pytest.raises(ModelUnavailable, match="colloquy models pull all-minilm-l6-v2"):
        found.encode(["text"])


def test_the_commit_says_what_each_language_was_compared_with(tmp_path: Path) -> None:
    workspace = Workspace.open("test", (), Layout(tmp_path / "artifacts"))
    workspace._encoder = WordEncoder()
    record = record_of(STAGE, workspace, "b1", None, 0, [])
    assert record["similarity"]["en"] == {"encoder": "words", "precision": "float32", "fingerprint": "words"}
    assert record["similarity"]["zh"]["method"] == "minhash"


def test_each_language_of_a_pool_is_compared_in_its_own_way(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    english = "a b c d e f g h i j"
    texts = {
        "e1": english,
        "e2": f"{english[:-1]}x",
        "e3": "k l m n o p q r s t",
        "z1": NURSE,
        "z2": changed(NURSE, 0.03),
        "z3": TEACHER,
        "z4": "好",
        "z5": "坏",
    }
    rows: list[Any] = [{"id": key, "text": text} for key, text in texts.items()]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    source = f"{{pool: p, reader: mapped, path: {path}, mapping: {{source_key: id, description: text}}}}"
    context = FakeContext(STAGE, f"personas.sources=[{source}]", "personas.pool_size=20")
    made = STAGE.prepare(context)
    made.accounting.check("personas")
    found = {name: rows_of(some) for name, some in made.rows.items()}
    keys: dict[str, str] = {row.persona_id: row.source_key for row in found["persona_candidates"]}  # type: ignore[attr-defined]
    dropped = {
        frozenset((keys[row.row_id], keys[row.duplicate_of])): (row.method, row.cosine is None)  # type: ignore[attr-defined]
        for row in found["duplicates"]
    }
    assert dropped == {frozenset(("e1", "e2")): ("embedding", False), frozenset(("z1", "z2")): ("minhash", True)}
    assert Counter(key[0] for key in (keys[row.persona_id] for row in found["persona_pool"])) == {"e": 2, "z": 4}  # type: ignore[attr-defined]
    told = [record.getMessage() for record in caplog.records if "by their characters" in record.getMessage()]
    assert len(told) == 1 and MULTILINGUAL in told[0]
