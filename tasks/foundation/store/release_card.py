"""The dataset card of a release: what is in it, where it comes from, under which licences, who made it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

WHAT = {
    "awareness_items": "element awareness items with their gold labels",
    "interaction_episodes": "scenes and goals for two agents to play",
    "chat_seeds": "where a conversation with a simulated user starts and what it is to reach",
    "persona_candidates": "the source personas of the seeds",
}

ITEMS = {"demo": frozenset({"awareness_items", "interaction_episodes"}), "eyt": frozenset({"chat_seeds"})}
"""By benchmark: the tables that hold what is asked in it."""

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


def card(manifest: Mapping[str, Any], local_providers: Collection[str]) -> str:
    """README.md of a release; its head tells a dataset hub which file holds which table. Models of `local_providers`
    prove the pipeline and nothing else."""
    build = manifest["build"]
    tables = [(name, WHAT.get(name, ""), f"{table['rows']:,}") for name, table in manifest["tables"].items()]
    sources = [_source(source) for source in manifest["sources"]]
    models = [
        (run, alias, model["name"], model["family"])
        for run, stage in manifest["stages"].items()
        for alias, model in stage["models"].items()
    ]
    parts = [
        _head(build, manifest["tables"]),
        f"# Benchmark {build}",
        *_warning(manifest, local_providers),
        "Frozen items and seeds, released by Colloquy. Score a model on them with\n"
        "`colloquy evaluate --target NAME --benchmark <this folder>`.",
        "A rebuild, not the authors' own data, of what these papers describe; cite them:",
        "\n".join(f"* {name}: {paper}" for name, (of, paper) in PAPERS.items() if of & set(manifest["tables"])),
        _table(("table", "one row is", "rows"), tables),
        "## Sources",
        _table(("source", "from", "revision", "split", "licence", "rows in the build", "used here"), sources)
        if sources
        else "None recorded: the rows were brought in by hand.",
        f"Licences of the personas in this folder: {', '.join(manifest['licences_of_sources']) or 'none recorded'}. "
        "Whoever hands the release on is bound by the licences of its sources, and for what models wrote (items, "
        "episodes, seeds) by the terms of the models below.",
        "## Models",
        _table(("run", "alias", "model", "family"), models) if models else "None.",
        f"Released {manifest['released_at']}; content hashes are in manifest.json.",
    ]
    return "\n\n".join(parts) + "\n"


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


def _head(build: str, tables: Iterable[str]) -> str:
    lines = ["---", f"pretty_name: Benchmark {build}", "configs:"]
    for name in tables:
        lines += [f"- config_name: {name}", f"  data_files: {name}.parquet"]
    return "\n".join([*lines, "---"])


def _source(source: Mapping[str, Any]) -> tuple[str, ...]:
    place = f"hub dataset {source['hub']}" if "hub" in source else f"file {source.get('file', 'unknown')}"
    asked, commit = source.get("revision"), source.get("commit")
    revision = f"{commit} ({asked})" if commit and asked != commit else commit or asked or "–"
    used = f"{source['used']:,} {source['unit']}{'' if source['used'] == 1 else 's'}"
    return source["name"], place, revision, source.get("split") or "–", source["licence"], f"{source['rows']:,}", used


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |" for line in lines)
