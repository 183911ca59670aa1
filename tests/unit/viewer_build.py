"""A store with the rows a test of the viewer wants, and a walk through all pages that can be reached from one."""

from __future__ import annotations

import html
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from starlette.testclient import TestClient

from tasks.foundation.store.commits import write_commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import describe_part, write_part
from tasks.foundation.tables import TABLES
from tasks.viewer.app import make_app
from tests.contract import sql_rows
from tests.unit.bare_commits import bare_commit

Rows = Mapping[str, Sequence[Mapping[str, Any]]]

HOSTILE = (
    "</script><script>alert(1)</script><img src=http://evil.example/x onerror=alert(1)>\"'&{{ 7*7 }}{% raw %}\u202e"
    "\u0000\u001b[31m\u200fשלום\u0085 call_0123456789abcdef"
)


def write_build(folder: Path, rows: Rows, build: str = "b1", *, stage: str = "metrics", revision: int = 0) -> Layout:
    """A build whose one commit of a stage holds these rows; another one says who judges."""
    layout = Layout(folder)
    tables = {name: (_write(layout, build, name, some, revision),) for name, some in rows.items() if name in TABLES}
    judged = {"judging": {"judges": ["m1", "m4"], "subsample": None}}
    write_commit(layout, bare_commit(build, "judging", member="m1", record={"settings": judged}))
    told = {"settings": {"metrics": {"alpha": 0.1, "panel_rule": "majority"}}, "profile": "test"}
    write_commit(layout, bare_commit(build, stage, tables=tables, revision=revision, record=told))
    return layout


def _write(layout: Layout, build: str, name: str, rows: Sequence[Mapping[str, Any]], revision: int) -> Any:
    table = TABLES[name]
    path = layout.part(name, build, "f" * 16, "00000", revision)
    write_part(layout, path, table, pa.Table.from_pylist([dict(row) for row in rows], schema=table.schema), {})
    return describe_part(layout, path, table, "00000")


def hostile_rows() -> dict[str, list[dict[str, Any]]]:
    """The good build, whose texts are all what nobody should send."""
    with patch.dict(sql_rows._PLAIN, {"string": HOSTILE}):
        return sql_rows.good()


@contextmanager
def client_of(layout: Layout) -> Iterator[TestClient]:
    with TestClient(make_app(layout), base_url="http://localhost") as client:
        yield client


def walk(client: TestClient, start: str = "/", most: int = 400) -> dict[str, Any]:
    """Every page that can be reached from one, by its address, with what was answered."""
    found: dict[str, Any] = {}
    waiting = deque([start])
    while waiting and len(found) < most:
        address = waiting.popleft()
        if address in found:
            continue
        found[address] = client.get(address)
        waiting += [one for one in links_of(found[address].text) if one.startswith("/")]
    return found


def links_of(page: str) -> list[str]:
    """The addresses that a page leads to, without their places in the page."""
    return [html.unescape(found).partition("#")[0] for found in re.findall(r'href="([^"]*)"', page)]
