"""What a released benchmark says of where its rows come from."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import datasets
import duckdb
import polars as pl
import pytest
import yaml
from huggingface_hub import HfApi

from flows.cli.evaluate import _build_of
from tasks.foundation import ROOT
from tasks.foundation.errors import ConfigError, SourceError, StoreError
from tasks.foundation.llm.providers import LOCAL_PROVIDERS
from tasks.foundation.settings.sections import PersonaSource, SceneSource
from tasks.foundation.sources.hub import Revisions
from tasks.foundation.stage import Prepared, Stage
from tasks.foundation.store.commits import commits_of
from tasks.foundation.store.layout import Layout
from tasks.foundation.tables import Row
from tasks.foundation.tables.evaluation import AwarenessPrediction
from tasks.foundation.tables.scenes import SeedDialogue, SeedTurn
from tasks.release.card import write_card as card
from tasks.release.folder import ReleaseForm, write_release
from tasks.release.hub import push_release
from tasks.release.imports import import_release
from tests.fakes.hub_uploads import taking_uploads
from tests.unit.dialogue_rows import dialogue, pairing, scene
from tests.unit.evaluation_build import Bench, episode, item, persona, seed

SEEDS = "data/chat_seeds/en/test.parquet"
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
    files = {split["path"] for config in head["configs"] for split in config["data_files"]}
    assert all((folder / file).is_file() for file in files) and len(files) == 3
    assert head["license"] == "other" and head["language"] == ["en"] and head["size_categories"] == "n<1K"
    assert "Differences from the papers" in page and "](" not in page


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
    manifest["stages"]["voting"] = {"fingerprint": "f", "models": models, "calls": 3, "cost_usd": None}
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
        {"tables": {"../outside": {"rows": 1, "hash": "0" * 64, "files": [SEEDS]}}},
        {"tables": {"llm_calls": {"rows": 1, "hash": "0" * 64, "files": [SEEDS]}}},
        {"tables": {"chat_seeds": {"rows": 1, "hash": "0" * 64, "files": [SEEDS]}}},
        {"tables": {"chat_seeds": {"rows": True, "hash": "0" * 64, "files": [SEEDS]}}},
        {"tables": {"chat_seeds": {"rows": -1, "hash": "zz", "files": [SEEDS]}}},
        {"tables": {"chat_seeds": {"rows": 1, "hash": "0" * 64, "files": []}}},
        {"tables": {"chat_seeds": {"rows": 1, "hash": "0" * 64, "files": ["/etc/passwd"]}}},
        {"tables": {"chat_seeds": {"rows": 1, "hash": "0" * 64, "files": ["data/../../x/en/test.parquet"]}}},
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


@pytest.mark.parametrize("file", ["manifest.json", SEEDS])
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


def test_three_libraries_load_a_release_each_in_its_way(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "released"
    write_release(bench.workspace().layout, "b1", folder, LOCAL_PROVIDERS)
    loaded = datasets.load_dataset(str(folder), "interaction_episodes_en", split="test", cache_dir=str(tmp_path / "c"))
    by_polars = pl.read_ndjson(folder / "data/interaction_episodes/en/test.jsonl")
    by_duckdb = duckdb.sql(f"from '{folder}/data/interaction_episodes/*/test.parquet'").pl()
    assert loaded["goal1"] == by_polars["goal1"].to_list() == by_duckdb["goal1"].to_list() == [episode().goal1]
    assert set(loaded["canary"]) == {json.loads((folder / "manifest.json").read_text())["canary"]}


def test_what_is_asked_goes_with_the_benchmark_and_results_when_asked_for(bench: Bench, tmp_path: Path) -> None:
    layout = bench.workspace().layout
    write_release(layout, "b1", tmp_path / "plain", LOCAL_PROVIDERS)
    write_release(layout, "b1", tmp_path / "full", LOCAL_PROVIDERS, ReleaseForm("2.1.0", results=True))
    for name in (
        "prompts/judging/brief/turn.en.yaml",
        "prompts/conversation/simulate.zh.yaml",
        "taxonomies/rubric.yaml",
    ):
        assert (tmp_path / "plain" / name).read_bytes() == next(
            (ROOT / top / name).read_bytes() for top in (".", "configs") if (ROOT / top / name).exists()
        )
    assert not (tmp_path / "plain" / "results").exists()
    full = json.loads((tmp_path / "full" / "manifest.json").read_text(encoding="utf-8"))
    assert full["version"] == "2.1.0" and "version 2.1.0" in (tmp_path / "full" / "README.md").read_text()


def test_results_are_in_a_release_when_asked_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "maker")

    async def fill() -> None:
        await bench.give("curation", {"awareness_items": [item("goal", "{}")]})
        prediction = AwarenessPrediction(item_id="item_goal_en", target="t", sample=0, prediction="{}", raw="{}")
        await bench.give("awareness", {"awareness_predictions": [prediction]}, "t")

    asyncio.run(fill())
    write_release(bench.workspace().layout, "b1", tmp_path / "full", LOCAL_PROVIDERS, ReleaseForm(results=True))
    assert pl.read_parquet(tmp_path / "full/results/awareness_predictions.parquet")["target"].to_list() == ["t"]


def test_contact_data_is_hidden_and_counted_unless_it_is_to_stay(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "maker")
    talk = "Ada: Write to ada@example.org.\nBen: No new one."
    asyncio.run(bench.give("curation", {"awareness_items": [item("goal", "{}", dialogue_text=talk)]}))
    layout = bench.workspace().layout
    write_release(layout, "b1", tmp_path / "hidden", LOCAL_PROVIDERS)
    write_release(layout, "b1", tmp_path / "kept", LOCAL_PROVIDERS, ReleaseForm(contact_data=True))
    texts = [
        pl.read_parquet(tmp_path / name / "data/awareness_items/en/test.parquet")["dialogue_text"].item()
        for name in ("hidden", "kept")
    ]
    assert texts == [talk.replace("ada@example.org", "[email]"), talk]
    assert "email 1" in (tmp_path / "hidden" / "README.md").read_text(encoding="utf-8")
    import_release(Layout(tmp_path / "mine"), tmp_path / "hidden", "b")


def test_the_canary_is_that_of_the_rows(bench: Bench, tmp_path: Path) -> None:
    layout = bench.workspace().layout
    for name in ("one", "two"):
        write_release(layout, "b1", tmp_path / name, LOCAL_PROVIDERS)
    one, two = (json.loads((tmp_path / name / "manifest.json").read_text())["canary"] for name in ("one", "two"))
    assert one == two and len(one) > 30


def test_a_release_is_sent_to_a_hub(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "released"
    write_release(bench.workspace().layout, "b1", folder, LOCAL_PROVIDERS)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with taking_uploads(tmp_path / "hub") as hub:
        monkeypatch.setattr("tasks.release.hub.HfApi", lambda: HfApi(endpoint=hub.url, token="hf_secret"))
        push_release(folder, "somebody/benchmark")
        assert hub.private == {"somebody/benchmark": True}
        sent = {path.relative_to(tmp_path / "hub/somebody/benchmark") for path in tmp_path.glob("hub/*/*/**/*.*")}
        there = {path.relative_to(folder) for path in folder.rglob("*.*") if path.is_file()}
        assert sent == there
        hub.refuse_with = 403
        with pytest.raises(StoreError, match="HTTP 403") as refused:
            push_release(folder, "somebody/benchmark")
    assert "hf_secret" not in str(refused.value)


def test_a_hub_that_nobody_serves_is_an_error_in_words(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "released"
    write_release(bench.workspace().layout, "b1", folder, LOCAL_PROVIDERS)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("tasks.release.hub.HfApi", lambda: HfApi(endpoint="http://127.0.0.1:9", token="hf_secret"))
    with pytest.raises(StoreError, match="ConnectError") as refused:
        push_release(folder, "somebody/benchmark")
    assert "hf_secret" not in str(refused.value)
