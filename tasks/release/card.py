"""The dataset card of a release: what is in it, where it comes from, under which licences, who made it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from huggingface_hub import DatasetCardData

from tasks.foundation import ROOT
from tasks.release import ITEMS

DIFFERENCES = ROOT / "docs" / "differences.md"

WHAT = {
    "awareness_items": "element awareness items with their gold labels",
    "interaction_episodes": "scenes and goals for two agents to play",
    "chat_seeds": "where a conversation with a simulated user starts and what it is to reach",
    "persona_candidates": "the source personas of the seeds",
}

PAPERS = {
    "DEMO": (
        ITEMS["demo"],
        "Minzheng Wang and others, *DEMO: Reframing Dialogue Interaction with Fine-grained Element Modeling*",
    ),
    "EYT-Bench": (
        ITEMS["eyt"],
        "Jinglan Gong and others, *Enjoy Your Talk: A Human-Centered Benchmark for Multi-Turn Dialogue with Decoupled "
        "User Simulation, Target Modeling, and Judging*, arXiv 2607.10428",
    ),
}
"""By benchmark: the tables that are of it, and the paper that describes it."""


LICENCES = {
    "apache-2.0": "apache-2.0",
    "mit": "mit",
    "cc-by-4.0": "cc-by-4.0",
    "cc-by-sa-4.0": "cc-by-sa-4.0",
    "cc0-1.0": "cc0-1.0",
    "cdla-permissive-2.0": "cdla-permissive-2.0",
}
"""Licences as sources name them, in small letters → as a hub knows them; any other is `other`."""

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def write_card(manifest: Mapping[str, Any], local_providers: Collection[str]) -> str:
    """README.md of a release; its head tells a dataset hub which file holds which table. Models of `local_providers`
    prove the pipeline and nothing else."""
    build = manifest["build"]
    tables = [(name, WHAT.get(name, ""), f"{table['rows']:,}") for name, table in manifest["tables"].items()]
    sources = [_source(source) for source in manifest["sources"]]
    parts = [
        f"---\n{_head(manifest).to_yaml()}\n---",
        f"# Benchmark {build}, version {manifest['version']}",
        *_warning(manifest, local_providers),
        "Frozen items and seeds, released by Colloquy. Score a model on them with\n"
        "`colloquy evaluate --target NAME --benchmark <this folder>`, or load a table with\n"
        f'`datasets.load_dataset("<this folder>", "{_first_config(manifest)}", split="test")`.',
        "A rebuild, not the authors' own data, of what these papers describe; cite them:",
        "\n".join(f"* {name}: {paper}" for name, (of, paper) in PAPERS.items() if of & set(manifest["tables"])),
        _table(("table", "one row is", "rows"), tables),
        "Every table has a folder in `data` with Parquet and JSON lines for each language. `prompts` and `taxonomies` "
        "hold what targets, simulator and judges are asked, and the label sets"
        + ("; `results` what they answered." if manifest["results"] else "."),
        "## Not for training",
        f"Every row carries the string `{manifest['canary']}`. Leave out of a training corpus what holds it.",
        "## Contact data",
        _contact_data(manifest["contact_data_hidden"]),
        *_material(manifest["checked_against"]),
        "## Sources",
        _table(("source", "from", "revision", "split", "licence", "rows in the build", "used here"), sources)
        if sources
        else "None recorded: the rows were brought in by hand.",
        f"Licences of the personas in this folder: {', '.join(manifest['licences_of_sources']) or 'none recorded'}. "
        "Whoever hands the release on is bound by the licences of its sources, and for what models wrote (items, "
        "episodes, seeds) by the terms of the models below.",
        "## How it was made",
        _table(("stage", "calls", "US $"), _costs(manifest)) if manifest["stages"] else "Not recorded.",
        _table(("stage", "alias", "model", "family"), _models(manifest)) if _models(manifest) else "Models: none.",
        "## Differences from the papers",
        _differences(),
        f"Released {manifest['released_at']}; content hashes are in manifest.json.",
    ]
    return "\n\n".join(parts) + "\n"


def _head(manifest: Mapping[str, Any]) -> DatasetCardData:
    """What a hub reads."""
    tables = manifest["tables"]
    rows = sum(table["rows"] for table in tables.values())
    licences = {
        LICENCES.get(licence.lower(), "other")
        for licence in (*manifest["licences_of_sources"], *(source["licence"] for source in manifest["sources"]))
    }
    configs = [
        {"config_name": _config(name, file), "data_files": [{"split": "test", "path": file}]}
        for name, table in tables.items()
        for file in table["files"]
    ]
    return DatasetCardData(
        pretty_name=f"Benchmark {manifest['build']}",
        license=licences.pop() if len(licences) == 1 else "other",
        language=sorted({_language(file) for table in tables.values() for file in table["files"]}),
        task_categories=["text-generation", "text-classification"],
        tags=["dialogue", "benchmark", "llm-as-a-judge"],
        size_categories=next((name for most, name in SIZES if rows < most), "n>1M"),
        configs=configs,
    )


def _differences() -> str:
    """The page on differences, without its title and its links, which lead nowhere from here."""
    page = DIFFERENCES.read_text(encoding="utf-8").partition("\n\n")[2].strip()
    return re.sub(r"\s*\(\[why\]\([^)]*\)\)", "", page)


def _config(table: str, file: str) -> str:
    return f"{table}_{_language(file)}"


def _language(file: str) -> str:
    """Of `data/<table>/<language>/test.parquet`."""
    return file.split("/")[2]


def _first_config(manifest: Mapping[str, Any]) -> str:
    name, table = next(iter(manifest["tables"].items()))
    return _config(name, table["files"][0])


def _contact_data(hidden: Mapping[str, int]) -> str:
    if not hidden:
        return "Nothing was hidden: none was found, or whoever released this kept it."
    counts = ", ".join(f"{kind} {n:,}" for kind, n in sorted(hidden.items()))
    return f"Texts were searched for contact data by its form; hidden behind placeholders such as `[email]`: {counts}."


def _material(checked: Mapping[str, Any] | None) -> list[str]:
    if checked is None:
        return []
    files = ", ".join(f"`{file}`" for file in checked["files"])
    return [
        f"Held against training material ({files}; {checked['rows']:,} rows, {checked['texts']:,} texts): none of them "
        "has an id of the benchmark, or most of one of its texts."
    ]


def _costs(manifest: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What was paid for each stage; unknown where a model had no price."""

    def shown(value: float | None, form: str) -> str:
        return "unknown" if value is None else f"{value:{form}}"

    return [
        (run, shown(stage["calls"], ","), shown(stage["cost_usd"], ",.2f")) for run, stage in manifest["stages"].items()
    ]


def _models(manifest: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    return [
        (run, alias, model["name"], model["family"])
        for run, stage in manifest["stages"].items()
        for alias, model in stage["models"].items()
    ]


def _warning(manifest: Mapping[str, Any], local_providers: Collection[str]) -> list[str]:
    """Of a release that models in this process have had a part in: that it is none to score anybody on."""
    local = sorted(
        {
            alias
            for stage in manifest["stages"].values()
            for alias, model in stage["models"].items()
            if model.get("provider") in local_providers
        }
    )
    if not local:
        return []
    return [
        f"**Not for scoring anybody: {', '.join(local)} (embedded or scripted) had a part in it. Such models prove the "
        "pipeline; what they wrote or labelled means nothing.**"
    ]


def _source(source: Mapping[str, Any]) -> tuple[str, ...]:
    place = f"hub dataset {source['hub']}" if "hub" in source else f"file {source.get('file', 'unknown')}"
    asked, commit = source.get("revision"), source.get("commit")
    revision = f"{commit} ({asked})" if commit and asked != commit else commit or asked or "–"
    used = f"{source['used']:,} {source['unit']}{'' if source['used'] == 1 else 's'}"
    return source["name"], place, revision, source.get("split") or "–", source["licence"], f"{source['rows']:,}", used


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |" for line in lines)
