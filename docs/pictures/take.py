"""Takes the pictures of README and docs/viewer.md: `python -m docs.pictures.take`, in the folder of the checkout.

Makes a build on scripted models in a temporary folder, serves its pages, and has a browser look at them. Needs
playwright (`pip install playwright`) and Chromium, which nothing else here does.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from flows.server import viewing
from tasks.foundation.store.layout import Layout
from tasks.report.build import write_report
from tests.whole_stage import run_chain

HERE = Path(__file__).parent

TARGETS = {
    "amber-72b": {"family": "amber", "access": "open"},
    "basalt-7b": {"family": "basalt", "access": "open"},
    "cedar-pro": {"family": "cedar", "access": "closed"},
    "cedar-pro-thinking": {"family": "cedar", "access": "closed", "thinking": True},
    "dune-mini": {"family": "dune", "access": "closed"},
    "ember-chat": {"family": "ember", "access": "open"},
    "fjord-max": {"family": "fjord", "access": "closed"},
}
"""Made up, all scripted."""
SCRIPTED = {
    "provider": "scripted",
    "name": "tasks.foundation.llm.providers.scripted:from_schema",
    "max_in_flight": 64,
    "prices": {"input_per_million": 1.5, "output_per_million": 6},
}
SETTINGS = (
    *(f"{stage}.targets=[{', '.join(TARGETS)}]" for stage in ("awareness", "interaction", "conversation")),
    "judging.judges=[scripted-a,scripted-c]",
    "chatseeds.per_pool=15",
    "conflicts.pairings={en: 30, zh: 30}",
    "metrics.resamples=2000",
)
WIDTH, HEIGHT = 1280, 800


def take(address: str) -> None:
    """Walks from the list of builds to a request, as a reader does, and takes a picture at each step."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(address)
        page.click("main table a")
        _picture(page, "build")
        page.click("a[href*='metric=satisfaction'][href*='cedar-pro']")
        _picture(page, "cell")
        page.click("main th a[href*='/conversations/']")
        page.click("details.sheet summary")
        page.evaluate("document.querySelector('.talk').scrollIntoView()")
        _picture(page, "conversation")
        page.emulate_media(color_scheme="dark")
        page.click("table.marks a.prompt")
        _picture(page, "request")
        page.emulate_media(color_scheme="light")
        page.goto(f"{address}/builds/main/tables/reviews?action=edit&q=garden")
        _picture(page, "table")
        browser.close()


def take_board(report: Path) -> None:
    """The top of the report, on a wide screen."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1500, "height": 760}, color_scheme="light")
        page.goto(report.as_uri())
        page.evaluate("[...document.querySelectorAll('#result h3')].at(-1).scrollIntoView()")
        _picture(page, "board")
        browser.close()


def _picture(page: Any, name: str) -> None:
    page.wait_for_load_state("networkidle")
    page.screenshot(path=HERE / f"{name}.png")


@contextmanager
def scripted_build() -> Iterator[Layout]:
    """A whole build on scripted models."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COLLOQUY_ARTIFACTS"] = folder
        models = {alias: {**SCRIPTED, **told, "extra_body": {"voice": alias}} for alias, told in TARGETS.items()}
        (Path(folder) / "models.yaml").write_text(yaml.safe_dump({"models": models}), encoding="utf-8")
        asyncio.run(run_chain(["--profile", "test", *(word for each in SETTINGS for word in ("--set", each))]))
        yield Layout(Path(folder))


def main() -> None:
    with scripted_build() as layout, viewing.serving_pages(layout, "127.0.0.1", (0,)) as address:
        take(address)
        take_board(write_report(layout, "main"))


if __name__ == "__main__":
    main()
