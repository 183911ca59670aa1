"""A provider that shouts the key back: whatever a run writes or says, and all that Prefect keeps, is without it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from tests.flow.conftest import Colloquy, PrefectServer

pytestmark = pytest.mark.flow

KEY = "sk-proj-0123SecretSecretSecret4567"
HIDDEN = KEY.removeprefix("sk-proj-").encode()


class Shouting(BaseHTTPRequestHandler):
    """Answers a few calls, then fails with the request's headers in its error."""

    status: ClassVar[int] = 401
    good: ClassVar[int] = 3
    seen: ClassVar[int] = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        cls = type(self)
        cls.seen += 1
        if cls.status == 200:
            self._break()
        elif cls.seen <= cls.good:
            choice = {"finish_reason": "stop", "message": {"content": '{"topic": "a topic"}'}}
            self._answer(
                200, {"model": "m", "choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
            )
        else:
            words = f"Incorrect API key provided: {KEY}. Headers were {dict(self.headers)!r}"
            self._answer(cls.status, {"error": {"message": words, "code": "invalid_api_key", "param": KEY}})

    def _break(self) -> None:
        """An answer that is no HTTP: one header longer than any client takes, with the request's own beside it."""
        self.wfile.write(f"HTTP/1.1 200 OK\r\nX-Echo: {dict(self.headers)!r}\r\nX-Long: {'y' * 9000}\r\n\r\n".encode())
        self.close_connection = True

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("x-echo", KEY)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def url() -> Iterator[str]:
    Shouting.seen = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Shouting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def files_with_the_key(*folders: Path) -> list[Path]:
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and HIDDEN in path.read_bytes()
    ]


@pytest.mark.parametrize("status", [401, 400, 200])
def test_a_key_is_in_no_output_file_table_or_database(
    toy: Colloquy, prefect_server: PrefectServer, url: str, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(Shouting, "status", status)
    entry = {"provider": "openai", "name": "m", "family": "x", "base_url": url, "api_key_env": "SHOUTING_KEY"}
    toy.layout.root.mkdir(parents=True)
    (toy.layout.root / "models.yaml").write_text(yaml.safe_dump({"models": {"shouting": entry}}), encoding="utf-8")
    soon = [word for setting in ("outage_seconds=1", "retry_base_seconds=0.05") for word in ("--set", f"llm.{setting}")]
    run = toy.run("--verbose", "--set", "voting.arbiter=shouting", *soon, SHOUTING_KEY=KEY)
    assert run.returncode == 5, run.stderr
    assert Shouting.seen > Shouting.good, "the server was asked, and it shouted"
    assert HIDDEN.decode() not in run.stdout + run.stderr
    assert status == 200 or "[key]" in run.stdout + run.stderr, "the message is there, less the key"
    assert files_with_the_key(toy.layout.root, prefect_server.home) == []


def test_the_search_would_find_a_key(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "log").write_bytes(b"... " + KEY.encode() + b" ...")
    assert files_with_the_key(tmp_path) == [tmp_path / "a" / "log"]
