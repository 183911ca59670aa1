"""The pages: whole whatever the data say, harmless, and with a way on from where nothing can be shown."""

from __future__ import annotations

import html
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from flows.server import viewing
from tasks.foundation.store.layout import Layout
from tasks.foundation.tables import TABLES
from tasks.viewer.lists import LISTS
from tests.contract import sql_rows
from tests.unit.test_report_page import Page
from tests.unit.viewer_build import HOSTILE, client_of, hostile_rows, links_of, walk, write_build

OF_A_BUILD = ["", "/tables", *(f"/lists/{name}" for name in LISTS), *(f"/tables/{name}" for name in TABLES)]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Every page of a build whose texts are all hostile."""
    layout = write_build(tmp_path_factory.mktemp("hostile"), hostile_rows())
    with client_of(layout) as client:
        yield walk(client)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with client_of(write_build(tmp_path_factory.mktemp("good"), sql_rows.good())) as client:
        yield client


def test_every_page_of_a_hostile_build_is_there_and_every_kind_is_met(hostile: dict[str, Any]) -> None:
    gone = {address: page.status_code for address, page in hostile.items() if page.status_code not in (200, 404)}
    assert not gone
    lost = [address for address, page in hostile.items() if page.status_code == 404]
    assert all("/id/call_0123456789abcdef" in address for address in lost)
    kinds = {re.sub(r"^/builds/[^/]+", "", address).strip("/").split("/")[0].split("?")[0] for address in hostile}
    assert kinds >= {"tables", "cell", "lists", "conversations", "interactions", "dialogues", "items", "requests"}


def test_what_data_say_is_text_on_every_page(hostile: dict[str, Any]) -> None:
    shown = 0
    for address, answer in hostile.items():
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        page = Page(answer.text)
        assert [one["src"] for one in page.all("script")] == ["/viewer.js"], address
        assert not page.all("img") and not page.all("iframe"), address
        for tag, name, value in page.attributes():
            assert not name.startswith("on"), (address, tag, name)
            assert name != "style", (address, tag)
            if name in ("href", "src", "action"):
                assert re.match(r"(/[^/]|/$|#|data:,$|http://localhost/builds/)", value), (address, tag, value)
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", answer.text), address
        shown += "alert(1)" in page.text and "⟨U+202E⟩" in page.text and "␀" in page.text
    assert shown > 20


def test_every_answer_says_what_a_browser_may_do_with_it(hostile: dict[str, Any], good: TestClient) -> None:
    answers = [*hostile.values(), good.get("/nothing"), good.get("/builds/b1/tables/scenes?nothing=1")]
    answers += [good.get("/style.css"), good.get("/viewer.js"), good.post("/")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_every_page_has_one_heading_and_no_place_twice(hostile: dict[str, Any]) -> None:
    for address, answer in hostile.items():
        if answer.headers["content-type"].startswith("text/html"):
            page = Page(answer.text)
            assert len(page.all("h1")) == 1, address
            ids = [one["id"] for _, one in page.elements if one.get("id")]
            assert len(ids) == len(set(ids)), address


@pytest.mark.parametrize("path", OF_A_BUILD)
@pytest.mark.parametrize("rows", ["nothing", "scenes"])
def test_a_build_without_most_tables_has_every_page(
    path: str, rows: str, without: dict[str, TestClient], good: TestClient
) -> None:
    assert without[rows].get(f"/builds/b1{path}").status_code == 200


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, TestClient]]:
    some = {"scenes": sql_rows.good()["scenes"]}
    with (
        client_of(write_build(tmp_path_factory.mktemp("nothing"), {})) as nothing,
        client_of(write_build(tmp_path_factory.mktemp("scenes"), some)) as scenes,
    ):
        yield {"nothing": nothing, "scenes": scenes}


def test_without_a_build_the_page_says_how_to_make_one(tmp_path: Path) -> None:
    with client_of(Layout(tmp_path)) as client:
        assert "colloquy run" in client.get("/").text
        answer = client.get("/builds/b1")
    assert answer.status_code == 404 and "none is there yet" in answer.text


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("/builds/b2", 404, "expected one of: b1"),
        ("/builds/B%2F..", 404, "no page"),
        ("/builds/%00", 404, "does not exist"),
        ("/builds/b1/conversations/conversation_0123456789abcdef", 404, "its stage was run again"),
        ("/builds/b1/conversations/%00", 404, "no row"),
        ("/builds/b1/dialogues/d9", 404, "no row"),
        ("/builds/b1/interactions/'; drop table x --", 404, "no row"),
        ("/builds/b1/items/i9", 404, "no row"),
        ("/builds/b1/items/i-goal?target=m9", 404, "expected one of: m3"),
        ("/builds/b1/items/i-goal?sample=x", 400, "expected a number"),
        ("/builds/b1/requests/call_0123456789abcdef", 404, "another build"),
        ("/builds/b1/requests/" + "0" * 64, 404, "no call with the key"),
        ("/builds/b1/id/scene_0123456789abcdef", 404, "another build"),
        ("/builds/b1/id/nonsense", 404, "is no id"),
        ("/builds/b1/find?id=", 400, "found none"),
        ("/builds/b1/tables/nonsense", 404, "expected one of: persona_candidates"),
        ("/builds/b1/tables/scenes?nonsense=1", 400, "has no column"),
        ("/builds/b1/tables/scenes?sort=nonsense", 400, "has no column"),
        ("/builds/b1/tables/scenes?page=0", 400, "from 1 on"),
        ("/builds/b1/tables/scenes?page=999999999", 400, "from 1 on"),
        ("/builds/b1/tables/characters?age=old", 400, "expected a number"),
        ("/builds/b1/tables/verdicts?pending=perhaps", 400, "does not fit"),
        ("/builds/b1/tables/llm_calls?created_at=>noon", 400, "does not fit"),
        ("/builds/b1/tables/scenes/row?scene_id=s9", 404, "no row"),
        ("/builds/b1/tables/scenes/row", 404, "no row"),
        ("/builds/b1/tables/stage_runs/row?stage=scenes&ended_at=noon", 404, "no row"),
        ("/builds/b1/cell?metric=nonsense", 404, "metrics"),
        ("/builds/b1/cell?metric=satisfaction&target=m9", 404, "these targets"),
        ("/builds/b1/cell?target=m9", 400, "metric is needed"),
        ("/builds/b1/lists/nonsense", 404, "expected one of: worst"),
        ("/builds/b1/lists/worst?element=x", 400, "narrowed by"),
        ("/../../etc/passwd", 404, "no page"),
        ("/style.css/../../../etc/passwd", 404, "no page"),
        ("/builds/..%2f..%2f..%2fetc%2fpasswd", 404, ""),
        ("/static/%2e%2e/%2e%2e/etc/passwd", 404, "no page"),
    ],
)
def test_what_is_not_there_is_told_with_what_to_do(good: TestClient, address: str, status: int, said: str) -> None:
    answer = good.get(address)
    assert answer.status_code == status, answer.text
    assert said in html.unescape(answer.text)
    assert Page(answer.text).all("a", href="/")


@pytest.mark.parametrize(
    "query", [HOSTILE, "'", "\\", "%", "' or 1=1 --", "x" * 5000, "\x00", "\ud800".encode("utf-8", "replace")]
)
def test_whatever_is_searched_for_is_only_searched_for(good: TestClient, query: Any) -> None:
    for path in ("?q=", "?topic=", "?topic=~", "?topic=!", "?scene_id=>"):
        answer = good.get(f"/builds/b1/tables/scenes{path}{quote(query)}")
        assert answer.status_code == 200
        assert [one["src"] for one in Page(answer.text).all("script")] == ["/viewer.js"]


def test_an_id_leads_to_its_row_whatever_it_is_of(tmp_path: Path) -> None:
    rows = sql_rows.good()
    ids = {name: f"{name}_{place:016x}" for place, name in enumerate(("scene", "call", "conversation", "chatseed"))}
    rows["scenes"][0]["scene_id"] = ids["scene"]
    rows["llm_calls"][1]["request_id"] = ids["call"]
    rows["conversations"][0]["conversation_id"] = ids["conversation"]
    rows["chat_seeds"][0]["chat_seed_id"] = ids["chatseed"]
    with client_of(write_build(tmp_path, rows)) as client:
        for name, one in ids.items():
            answer = client.get(f"/builds/b1/find?id=%20{one}")
            assert answer.status_code == 200 and len(answer.history) == 1, name
            assert one in answer.text


def test_a_page_can_be_cited_and_says_when_the_build_has_changed_since(tmp_path: Path) -> None:
    rows = sql_rows.good()
    layout = write_build(tmp_path, rows)
    with client_of(layout) as client:
        (cited,) = [one for one in links_of(client.get("/builds/b1/dialogues/d1").text) if "commit=" in one]
        assert "has changed since" not in client.get(cited).text
        write_build(tmp_path, {**rows, "utterances": []}, revision=1)
        later = client.get(cited)
    assert later.status_code == 200 and "has changed since" in later.text


def test_what_a_run_commits_is_there_with_the_next_page_and_no_page_fails_meanwhile(tmp_path: Path) -> None:
    rows = sql_rows.good()
    layout = write_build(tmp_path, rows)
    scene = rows["scenes"][0]
    failed, over = [], threading.Event()

    def look(client: TestClient) -> None:
        while not over.is_set():
            for path in ("", "/tables/scenes?q=x", "/dialogues/d1", "/lists/worst"):
                answer = client.get(f"/builds/b1{path}")
                if answer.status_code != 200:
                    failed.append(answer.text)

    with client_of(layout) as client, client_of(layout) as other:
        readers = [threading.Thread(target=look, args=(one,)) for one in (client, other)]
        for reader in readers:
            reader.start()
        for n in range(1, 6):
            more = [{**scene, "scene_id": f"s{place}"} for place in range(n)]
            write_build(tmp_path, {**rows, "scenes": [scene, *more]}, revision=n)
            with client_of(layout) as fresh:
                assert f"of {n + 1}" in fresh.get("/builds/b1/tables/scenes").text
        over.set()
        for reader in readers:
            reader.join()
        assert "of 6" in client.get("/builds/b1/tables/scenes").text
    assert not failed


def test_files_that_are_gone_are_told_of_and_the_others_still_shown(tmp_path: Path) -> None:
    layout = write_build(tmp_path, sql_rows.good())
    with client_of(layout) as client:
        assert client.get("/builds/b1/tables/scenes").status_code == 200
        shutil.rmtree(layout.root / "store" / "scenes")
        answer = client.get("/builds/b1/tables/scenes?q=x")
        assert answer.status_code == 503 and "colloquy status" in answer.text
        assert client.get("/builds/b1/tables/dialogues").status_code == 200


def test_a_removed_build_is_gone_with_the_next_page(tmp_path: Path) -> None:
    layout = write_build(tmp_path, sql_rows.good())
    with client_of(layout) as client:
        assert client.get("/builds/b1").status_code == 200
        shutil.rmtree(layout.builds / "b1")
        assert client.get("/builds/b1").status_code == 404


def test_without_the_reply_cache_a_request_says_so_and_shows_what_the_build_has(good: TestClient) -> None:
    page = good.get("/builds/b1/requests/r1")
    assert page.status_code == 200
    assert "is not there: it was removed" in page.text and "hi" in Page(page.text).text


def test_texts_without_an_end_are_cut_with_their_length(tmp_path: Path) -> None:
    rows = sql_rows.good()
    rows["utterances"][0]["text"] = "longer " * 100_000
    with client_of(write_build(tmp_path, rows)) as client:
        page = client.get("/builds/b1/dialogues/d1")
        table = client.get("/builds/b1/tables/utterances")
    assert "500,000 more characters" in page.text
    assert len(table.text) < 20_000


@pytest.mark.parametrize(
    ("host", "headers", "status"),
    [
        ("127.0.0.1", {"host": "localhost:4300"}, 200),
        ("127.0.0.1", {"host": "127.0.0.1:4300"}, 200),
        ("127.0.0.1", {"host": "[::1]:4300"}, 200),
        ("127.0.0.1", {"host": "evil.example:4300"}, 403),
        ("127.0.0.1", {"host": "localhost.evil.example"}, 403),
        ("127.0.0.1", {"host": ""}, 403),
        ("127.0.0.1", {"host": "localhost", "origin": "http://evil.example"}, 403),
        ("127.0.0.1", {"host": "localhost", "origin": "http://localhost"}, 200),
        ("0.0.0.0", {"host": "my-machine:4300"}, 200),
        ("0.0.0.0", {"host": "my-machine:4300", "origin": "http://evil.example"}, 403),
    ],
)
def test_only_its_own_pages_may_ask_and_by_its_own_name(
    tmp_path: Path, host: str, headers: dict[str, str], status: int
) -> None:
    client = TestClient(viewing.make_pages(Layout(tmp_path), host))
    assert client.get("/", headers=headers).status_code == status
