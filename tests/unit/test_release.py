"""What a released benchmark says of where its rows come from."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.cli.evaluate import _build_of
from tasks.foundation.errors import ConfigError, SourceError
from tasks.foundation.llm.providers import LOCAL_PROVIDERS
from tasks.foundation.settings.sections import PersonaSource, SceneSource
from tasks.foundation.sources.hub import Revisions
from tasks.foundation.stage import Prepared, Stage
from tasks.foundation.store.commits import commits_of
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.release import import_release, write_release
from tasks.foundation.store.release_card import card
from tasks.foundation.tables import Row
from tasks.foundation.tables.scenes import SeedDialogue, SeedTurn
from tests.unit.dialogue_rows import dialogue, pairing, scene
from tests.unit.evaluation_build import Bench, episode, persona, seed

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def seed_dialogue(language: str, corpus: str) -> SeedDialogue:
    return SeedDialogue(
        seed_id=f"seed_{language}_1",
        corpus=corpus,
        split="train",
        source_index=0,
        language=language,  # type: ignore[arg-type]
        turns=[SeedTurn(speaker="A", text="Hello.")],
        turn_count=1,
        narrative=None,
        licence="MIT",
    )


async def made_by(bench: Bench, name: str, rows: dict[str, list[Row]], sources: list[Any]) -> None:
    stage = Stage(
        name=name,
        reads=(),
        prepare=lambda context: Prepared((), rows),
        prepared=tuple(rows),
        sources=lambda settings: sources,
    )
    await bench.run(stage, None)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Two personas and two seed dialogues; one of each is behind what is released."""
    bench = Bench(tmp_path_factory.mktemp("maker"))
    asyncio.run(fill(bench))
    return bench


async def fill(bench: Bench) -> None:
    pool = PersonaSource(
        pool="p", reader="nemotron", hub="a/people", revision="main", split="train", licence="CC-BY-4.0"
    )
    revisions = Revisions.of(bench.workspace().layout, "b1")
    revisions.folder.mkdir(parents=True)
    (revisions.folder / "a%2Fpeople%40main").write_text(COMMIT)
    await made_by(bench, "personas", {"persona_candidates": [persona(), persona(2)]}, [pool])
    corpora = [
        SceneSource(corpus="soda", reader="soda", path="/home/somebody/soda.parquet", licence="CC-BY-4.0"),
        SceneSource(corpus="lccc", reader="lccc", hub="b/talk", revision=COMMIT, licence="MIT"),
    ]
    seeds: list[Row] = [seed_dialogue("en", "soda"), seed_dialogue("zh", "lccc")]
    await made_by(bench, "scenes", {"seed_dialogues": seeds, "scenes": [scene(1), scene(1, "zh")]}, corpora)
    await bench.give("conflicts", {"pairings": [pairing(1), pairing(1, "zh")]})
    await bench.give("dialogues", {"dialogues": [dialogue(1)[0], dialogue(1, "zh")[0]]})
    await bench.give("curation", {"interaction_episodes": [episode(dialogue_id="dialogue_en_1")]})
    await bench.give("chatseeds", {"chat_seeds": [seed()]})


def test_a_release_names_its_sources_with_revision_licence_and_counts(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "released"
    write_release(bench.workspace().layout, "b1", folder, LOCAL_PROVIDERS)
    sources = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["sources"]
    people, soda, lccc = sources
    assert (people["hub"], people["revision"], people["commit"]) == ("a/people", "main", COMMIT)
    assert (people["rows"], people["used"], people["unit"], people["licence"]) == (2, 1, "persona", "CC-BY-4.0")
    assert (soda["file"], soda["rows"], soda["used"], soda["unit"]) == ("soda.parquet", 1, 1, "dialogue")
    assert (lccc["commit"], lccc["rows"], lccc["used"]) == (COMMIT, 1, 0)
    assert "somebody" not in json.dumps(sources), "where the maker keeps files is nobody's business"


def test_the_card_shows_sources_and_heads_for_a_hub(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "released"
    write_release(bench.workspace().layout, "b1", folder, LOCAL_PROVIDERS)
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert f"| p | hub dataset a/people | {COMMIT} (main) | train | CC-BY-4.0 | 2 | 1 persona |" in page
    assert "| soda | file soda.parquet | – | – | CC-BY-4.0 | 1 | 1 dialogue |" in page
    assert "| chat_seeds | where a conversation with a simulated user starts and what it is to reach | 1 |" in page
    assert "* DEMO: Minzheng Wang" in page and "* EYT-Bench: Jinglan Gong" in page
    head = yaml.safe_load(page.split("---\n")[1])
    files = {config["data_files"] for config in head["configs"]}
    assert all((folder / file).is_file() for file in files) and len(files) == 3


def test_a_release_of_an_imported_release_keeps_its_sources(bench: Bench, tmp_path: Path) -> None:
    first, again, mine = tmp_path / "released", tmp_path / "again", Layout(tmp_path / "mine")
    write_release(bench.workspace().layout, "b1", first, LOCAL_PROVIDERS)
    import_release(mine, first, "b")
    write_release(mine, "b", again, LOCAL_PROVIDERS)
    manifests = [json.loads((folder / "manifest.json").read_text(encoding="utf-8")) for folder in (first, again)]
    assert manifests[0]["sources"] == manifests[1]["sources"] and manifests[0]["tables"] == manifests[1]["tables"]


def test_a_commit_records_the_sources_it_was_made_from(bench: Bench) -> None:
    record = commits_of(bench.workspace().layout, "b1")["scenes"].record
    assert record["sources"] == [
        {"name": "soda", "licence": "CC-BY-4.0", "path": "/home/somebody/soda.parquet", "split": None},
        {"name": "lccc", "licence": "MIT", "hub": "b/talk", "revision": COMMIT, "commit": COMMIT, "split": None},
    ]


def test_the_card_of_what_small_models_made_says_that_it_means_nothing(bench: Bench, tmp_path: Path) -> None:
    write_release(bench.workspace().layout, "b1", tmp_path / "released", LOCAL_PROVIDERS)
    manifest = json.loads((tmp_path / "released" / "manifest.json").read_text(encoding="utf-8"))
    assert "Not for scoring anybody" not in card(manifest, LOCAL_PROVIDERS)
    models = {"small": {"name": "s", "family": "s", "provider": "embedded"}}
    manifest["stages"]["voting"] = {"fingerprint": "f", "models": models}
    assert "**Not for scoring anybody: small (embedded or scripted)" in card(manifest, LOCAL_PROVIDERS)


def everything(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


@pytest.mark.parametrize(
    "change",
    [
        {"build": "../../outside"},
        {"build": "/outside"},
        {"build": ".."},
        {"build": "b1\n"},
        {"build": "ｂ1"},
        {"build": "b1/../../outside"},
        {"build": ["b1"]},
        {"build": None},
        {"tables": {}},
        {"tables": {"../outside": {"rows": 1, "hash": "0" * 64}}},
        {"tables": {"llm_calls": {"rows": 1, "hash": "0" * 64}}},
        {"tables": {"chat_seeds": {"rows": 1, "hash": "0" * 64}}},
        {"tables": {"chat_seeds": {"rows": True, "hash": "0" * 64}}},
        {"tables": {"chat_seeds": {"rows": -1, "hash": "zz"}}},
        {"tables": ["chat_seeds"]},
        {"sources": [{"name": "n"}]},
        {"stages": {"scenes": {"fingerprint": "../x", "models": {}}}},
        {"released_at": "yesterday"},
        {"format": "1"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_release_that_says_what_none_does_is_refused_before_anything_is_written(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    folder, mine = tmp_path / "released", Layout(tmp_path / "deep" / "mine")
    write_release(bench.workspace().layout, "b1", folder, LOCAL_PROVIDERS)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps(manifest | change), encoding="utf-8")
    before = everything(tmp_path)
    with pytest.raises(SourceError):
        _build_of(mine, str(folder), None)
    assert everything(tmp_path) - before <= {str(mine.root.parent), *everything(mine.root.parent)}
    assert not list(mine.root.rglob("*.parquet"))


@pytest.mark.parametrize("file", ["manifest.json", "chat_seeds.parquet"])
def test_a_file_of_a_release_that_leads_elsewhere_is_refused(bench: Bench, tmp_path: Path, file: str) -> None:
    folder, mine = tmp_path / "released", Layout(tmp_path / "mine")
    write_release(bench.workspace().layout, "b1", folder, LOCAL_PROVIDERS)
    (folder / file).rename(tmp_path / "elsewhere")
    (folder / file).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SourceError, match="leads out of the release"):
        import_release(mine, folder, "b")
    assert not list(mine.root.rglob("*.parquet"))


@pytest.mark.parametrize("build", ["../b", "a/b", "B", "b" * 80])
def test_a_release_goes_into_a_build_with_a_name_only(bench: Bench, tmp_path: Path, build: str) -> None:
    folder, mine = tmp_path / "released", Layout(tmp_path / "mine")
    write_release(bench.workspace().layout, "b1", folder, LOCAL_PROVIDERS)
    with pytest.raises(ConfigError, match="build name"):
        _build_of(mine, str(folder), build)
    assert not mine.root.exists()
