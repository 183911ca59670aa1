"""A dataset hub on this machine: the few endpoints that the hub libraries ask, over files of a folder.

    folder/nvidia/Nemotron-Personas-USA/data/train-00000-of-00001.parquet

Branch `main` of every dataset stands for the commit that `HubServer.commit` names; every commit has the same files.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "c0ffee" * 6 + "c0de"
PIECE = 2**16


class HubServer(ThreadingHTTPServer):
    """What was asked for is in `asked`, what was sent of each file in `sent`."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.folder = folder
        self.commit = COMMIT
        self.asked: list[str] = []
        self.sent: Counter[str] = Counter()
        """Bytes by file."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[HubServer]:
    with HubServer(folder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class _Answers(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)  # or the system takes in megabytes unread
        super().setup()

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_POST(self) -> None:
        self._answer(body=True)

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        size = int(self.headers.get("Content-Length") or 0)
        self.posted = self.rfile.read(size).decode()
        self.server.asked.append(f"{self.command} {path}")
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "datasets"]:
            self._api("/".join(parts[2:4]), parts[4:], body)
        elif parts[0] == "datasets" and parts[3:4] == ["resolve"]:
            self._file("/".join(parts[1:3]), "/".join(parts[5:]), body)
        else:
            self._send(404, b"{}", body)

    def _api(self, dataset: str, rest: list[str], body: bool) -> None:
        folder = self.server.folder / dataset
        if not folder.is_dir():
            self._send(404, b'{"error": "Repository not found"}', body, {"X-Error-Code": "RepoNotFound"})
            return
        asked = rest[1] if rest[1:] else "main"
        commit = self.server.commit if asked == "main" else asked
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        if not rest or rest[0] == "revision":
            if commit not in (COMMIT, self.server.commit):
                self._send(404, b'{"error": "no"}', body, {"X-Error-Code": "RevisionNotFound"})
                return
            siblings = [{"rfilename": file.relative_to(folder).as_posix()} for file in files]
            self._json({"id": dataset, "sha": commit, "siblings": siblings, "private": False}, body)
        elif rest[0] == "paths-info":
            wanted = json.loads(self.posted)["paths"] if self.posted.startswith("{") else parse_qs(self.posted)["paths"]
            self._json([self._entry(folder, path) for path in wanted if (folder / path).exists()], body)
        elif rest[0] == "tree":
            below = folder / "/".join(rest[2:])
            recursive = parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower() == "true"
            found = sorted(below.rglob("*") if recursive else below.iterdir()) if below.is_dir() else []
            self._json([self._entry(folder, file.relative_to(folder).as_posix()) for file in found], body)
        else:
            self._send(404, b"{}", body)

    def _entry(self, folder: Path, path: str) -> dict[str, Any]:
        file = folder / path
        if file.is_dir():
            return {"type": "directory", "oid": sha256(path.encode()).hexdigest()[:40], "size": 0, "path": path}
        oid = sha256(file.read_bytes()).hexdigest()[:40]
        return {"type": "file", "oid": oid, "size": file.stat().st_size, "path": path}

    def _file(self, dataset: str, name: str, body: bool) -> None:
        file = self.server.folder / dataset / name
        if not file.is_file():
            self._send(404, b"", body, {"X-Error-Code": "EntryNotFound"})
            return
        content = file.read_bytes()
        headers = {
            "ETag": f'"{sha256(content).hexdigest()[:40]}"',
            "X-Repo-Commit": self.server.commit,
            "Accept-Ranges": "bytes",
        }
        span = (self.headers.get("Range") or "").removeprefix("bytes=")
        status = 200
        if span:
            first, last = span.split("-")
            start, stop = int(first), min(int(last) + 1 if last else len(content), len(content))
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(content)}"
            content, status = content[start:stop], 206
        self._send(status, content, body, headers, name)

    def _json(self, value: Any, body: bool) -> None:
        self._send(200, json.dumps(value).encode(), body, {"Content-Type": "application/json"})

    def _send(
        self, status: int, content: bytes, body: bool, headers: dict[str, str] | None = None, file: str | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for start in range(0, len(content) if body else 0, PIECE):
                piece = content[start : start + PIECE]
                self.wfile.write(piece)
                if file is not None:
                    self.server.sent[file] += len(piece)
