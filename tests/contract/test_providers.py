"""Every provider is declared whole, once; and CONTRIBUTING's recipe for another one works as it stands there."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from tasks.foundation import ROOT
from tasks.foundation.llm import providers
from tasks.foundation.llm.batch import BatchApi
from tasks.foundation.llm.providers import PROVIDERS, ProviderKind, Structured
from tasks.foundation.llm.request import Provider


def faults_of(kind: ProviderKind) -> Iterator[str]:
    """What a declaration lacks: one sentence for each line of it that is missing or wrong."""
    places = {"client": (kind.client, Provider), "batches": (kind.batches, BatchApi), "check": (kind.check, None)}
    for line, (place, protocol) in places.items():
        if place is None:
            continue
        try:
            found = kind.load(place)
        except (ImportError, AttributeError) as error:
            yield f"{kind.name}: {line} is {place!r}, which is not there ({error})"
            continue
        if protocol is not None and (lacking := [name for name in methods_of(protocol) if not hasattr(found, name)]):
            yield f"{kind.name}: {line} is {place!r}, which lacks {', '.join(lacking)}"
        if list(inspect.signature(found).parameters) != ["spec"]:
            yield f"{kind.name}: {line} is {place!r}, which is to take one argument, spec"
    if kind.batch_share is not None and (kind.batches is None or kind.url is None):
        yield f"{kind.name}: batch_share is that of the batches of the vendor's url: declare both, or leave it out"
    if kind.local and (kind.url or kind.needs_key or kind.batches):
        yield f"{kind.name}: local is a provider in this process, which has no url, no key and no batches"
    if kind.runs_weights and kind.check is None:
        yield f"{kind.name}: check is missing, which says that weights are not here"
    if not kind.structured or not set(kind.structured) <= set(get_args(Structured)):
        yield f"{kind.name}: structured is {kind.structured!r}, expected some of {', '.join(get_args(Structured))}"


def methods_of(protocol: type) -> list[str]:
    return [name for name, value in vars(protocol).items() if inspect.isfunction(value) and not name.startswith("_")]


@pytest.mark.parametrize("kind", PROVIDERS.values(), ids=PROVIDERS)
def test_a_provider_is_declared_whole(kind: ProviderKind) -> None:
    assert list(faults_of(kind)) == []


def test_every_class_that_answers_calls_is_declared() -> None:
    answering = set()
    for module in pkgutil.iter_modules(providers.__path__):
        code = importlib.import_module(f"{providers.__name__}.{module.name}")
        for name, value in vars(code).items():
            if inspect.isclass(value) and value.__module__ == code.__name__ and hasattr(value, "call"):
                answering.add(f"{module.name}:{name}")
    assert answering == {kind.client for kind in PROVIDERS.values()}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"client": "nowhere:OpenAIProvider"}, "client is 'nowhere:OpenAIProvider', which is not there"),
        ({"client": "openai_compatible:Nobody"}, "client is 'openai_compatible:Nobody', which is not there"),
        (
            {"client": "openai_compatible:OpenAIBatches"},
            "client is 'openai_compatible:OpenAIBatches', which lacks call",
        ),
        ({"batches": "openai_compatible:OpenAIProvider"}, "which lacks line, upload, create, find, status, download"),
        ({"check": "scripted:make_reply"}, "check is 'scripted:make_reply', which is to take one argument"),
        ({"url": None}, "batch_share is that of the batches of the vendor's url"),
        ({"batches": None}, "batch_share is that of the batches of the vendor's url"),
        ({"local": True}, "local is a provider in this process"),
        ({"runs_weights": True}, "check is missing"),
        ({"structured": ("xml",)}, "structured is ('xml',)"),
    ],
)
def test_what_a_declaration_lacks_is_named_by_its_line(changes: dict[str, Any], line: str) -> None:
    assert any(line in fault for fault in faults_of(replace(PROVIDERS["openai"], **changes)))


ASKS = """
import asyncio, json
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.models import load_models
from tasks.foundation.llm.request import Message, Request

async def main():
    with ReplyCache("replies.sqlite") as cache:
        engine = Engine(load_models(), cache, run_id="b/voting/f/r0")
        outcome = await engine.ask(Request("voting", "row", "judge", "echo-1", (Message("user", "Good morning."),)))
        await engine.close()
    print(json.dumps([outcome.value, outcome.record.provider, outcome.record.prompt_tokens, outcome.record.cost_usd]))

asyncio.run(main())
"""


def test_the_recipe_for_a_provider_makes_one_that_answers(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name in ("tasks", "configs", "tests"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", checkout)
    follow_recipe(checkout)
    environment = {**os.environ, "ECHO_API_KEY": "a-key"}
    asked = subprocess.run(
        [sys.executable, "-c", ASKS], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout) == ["Good morning.", "echo", 3, None]
    tests = [f"tests/contract/{name}.py" for name in ("test_providers", "test_models")]
    checked = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not recipe", *tests],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def follow_recipe(checkout: Path) -> None:
    """Does in a copy of the tree what CONTRIBUTING says under "Add a provider": its three blocks go where each says."""
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipe = contributing.split("## Add a provider")[1].split("\n## ")[0]
    module, entry, model = (
        textwrap.dedent(block) for block in re.findall(r"^ *```\w+\n(.*?)^ *```$", recipe, re.DOTALL | re.MULTILINE)
    )
    place = re.match(r"# (\S+)\n", module)
    assert place is not None, "the first line of the module says where it goes"
    (checkout / place[1]).write_text(module, encoding="utf-8")
    registry = checkout / "tasks/foundation/llm/providers/__init__.py"
    code = registry.read_text(encoding="utf-8")
    end_of_entries = code.index("    )\n}\n", code.index("PROVIDERS"))
    registry.write_text(
        code[:end_of_entries] + textwrap.indent(f"{entry.strip()},\n", " " * 8) + code[end_of_entries:],
        encoding="utf-8",
    )
    with (checkout / "configs/models.yaml").open("a", encoding="utf-8") as models:
        models.write(textwrap.indent(model, "  "))
