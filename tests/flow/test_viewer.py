"""The viewer over a whole build on scripted models: from a cell of the board to the raw reply it rests on."""

from __future__ import annotations

import asyncio
import html
import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from flows.server import viewing
from tasks.foundation.store.layout import Layout
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.references import ASKED_FOR
from tasks.viewer import addresses, cells, requests, rows
from tasks.viewer.reading import Library, Reading
from tests.unit.test_report_page import Page
from tests.unit.viewer_build import client_of
from tests.whole_stage import run_chain

pytestmark = pytest.mark.flow


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    folder = tmp_path_factory.mktemp("viewed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLLOQUY_ARTIFACTS", str(folder))
        asyncio.run(run_chain(["--profile", "test"]))
        yield Layout(folder)


@pytest.fixture(scope="module")
def reading(layout: Layout) -> Iterator[Reading]:
    library = Library(layout)
    with library.open("main") as reading:
        yield reading
    library.close()


def follow(client: TestClient, page: str, pattern: str) -> tuple[str, str]:
    """The first link of a page with an address like this, and the page it leads to."""
    address = next(one for one in re.findall(r'href="([^"]+)"', page) if re.search(pattern, one))
    answer = client.get(html.unescape(address))
    assert answer.status_code == 200, address
    return html.unescape(address), answer.text


def test_a_reader_gets_from_a_cell_to_the_raw_reply(layout: Layout) -> None:
    with client_of(layout) as client:
        _, build = follow(client, client.get("/").text, "^/builds/main$")
        address, cell = follow(client, build, "metric=satisfaction")
        assert "they come to the value above" in cell, address
        _, talk = follow(client, cell, "^/builds/main/conversations/")
        address, request = follow(client, talk.partition("As a whole")[2], "^/builds/main/requests/")
    request_id = address.rpartition("/")[2]
    with sqlite3.connect(layout.cache / "replies.sqlite") as cache:
        ((text,),) = cache.execute("select reply from replies where request_id = ?", (request_id,)).fetchall()
    assert text in Page(request).text
    assert "satisfaction" in text


def test_every_cell_comes_to_what_its_row_says(reading: Reading) -> None:
    metrics = reading.rows("select * from metrics order by all")
    assert len(metrics) > 500
    for row in metrics[::23]:
        key = {name: row[name] for name in cells.KEY if row[name] is not None}
        page = cells.read_cell(reading, key)
        assert page.agrees or page.units is None, key
        assert page.units is not None or row["metric"].endswith(("_rank_tau", "_rank_flips")), key


def test_every_request_has_rows_its_replies_and_is_found_from_a_row(reading: Reading) -> None:
    found = {
        call["request_id"]
        for table in ASKED_FOR
        for row in reading.rows(f"select * from {table}")
        for call in rows.find_calls(reading, table, row)
    }
    calls = reading.rows("select * from llm_calls")
    rejected = {row["row_key"] for row in reading.rows("select row_key from rejects")}
    assert {call["request_id"] for call in calls if call["row_key"] not in rejected} <= found
    for call in calls:
        page = requests.read_request(reading, call["request_id"])
        assert page.attempts and page.lacking is None
        assert page.attempts[-1].reply == page.reply and page.attempts[-1].messages == page.messages
        assert len(page.attempts) <= call["attempts"]
        assert page.rows or call["row_key"] in rejected


def test_what_rows_refer_to_is_in_the_build(reading: Reading) -> None:
    for name in TABLES:
        for row in reading.rows(f"select * from {name} limit 5"):
            key = {column: str(row[column]) for column in TABLES[name].key if row[column] is not None}
            page = rows.read_row(reading, name, key)
            missing = [one for one in page.parents if one.row is None and one.table not in ("models", "persona_pool")]
            assert not missing or name in ("persona_candidates", "conflicts", "verdicts"), (name, missing)


def test_without_the_cache_the_last_prompt_and_reply_are_still_there(layout: Layout, tmp_path: Path) -> None:
    shutil.copytree(layout.root, tmp_path / "artifacts", ignore=shutil.ignore_patterns("cache"))
    library = Library(Layout(tmp_path / "artifacts"))
    with library.open("main") as reading:
        call = reading.rows("select request_id from llm_calls order by all limit 1")[0]
        page = requests.read_request(reading, call["request_id"])
        assert not page.attempts and page.messages and page.reply
        assert page.lacking is not None and "removed" in page.lacking
    library.close()
    assert not (tmp_path / "artifacts" / "cache").exists()


def chromium() -> Any:
    """A browser to drive, where there is one."""
    playwright = pytest.importorskip("playwright.sync_api")
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no browser here")
    return playwright, found


def test_a_browser_gets_from_a_cell_to_the_raw_reply_without_a_word_to_anybody_else(layout: Layout) -> None:
    playwright, program = chromium()
    with viewing.serving_pages(layout, "127.0.0.1", (0,)) as address, playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for width in (1280, 420):
            page = browser.new_page(viewport={"width": width, "height": 900})
            asked, complaints = [], []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.on("console", lambda said, complaints=complaints: complaints.append(said.text))
            page.goto(address)
            page.click("main table a")
            page.click("a[href*='metric=satisfaction']")
            page.click("main th a[href*='/conversations/']")
            if not page.locator("table.marks a.prompt").last.is_visible():
                page.locator("details.sheet summary").last.click()
            page.locator("table.marks a.prompt").last.click()
            assert "satisfaction" in page.inner_text(".message.reply")
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
            assert not complaints and all(url.startswith((address, "data:")) for url in asked)
            page.fill("input[name=id]", "call_0123456789abcdef")
            page.press("input[name=id]", "Enter")
            page.wait_for_selector("text=another build")
            assert page.url.endswith(addresses.of_id("main", "call_0123456789abcdef") or "") or "find" in page.url
        browser.close()
