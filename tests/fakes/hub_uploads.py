"""A dataset hub on this machine that takes files: the endpoints that `HfApi.upload_folder` asks, over a folder."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

COMMIT = "c0ffee" * 6 + "c0de"


class UploadHub(ThreadingHTTPServer):
    """Datasets that were made, and whether they are private. With `refuse_with` all requests fail with that status."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.folder = folder
        self.private: dict[str, bool] = {}
        self.refuse_with: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextlib.contextmanager
def taking_uploads(folder: Path) -> Iterator[UploadHub]:
    with UploadHub(folder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class _Answers(BaseHTTPRequestHandler):
    server: UploadHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer({"id": "somebody/benchmark", "sha": COMMIT, "private": True, "siblings": []})

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        dataset = "/".join(path.split("/")[3:5])
        if path == "/api/repos/create":
            asked = json.loads(text)
            name = f"{asked.get('organization') or 'me'}/{asked['name']}"
            self.server.private[name] = asked.get("private", asked.get("visibility") == "private")
            self._answer({"url": f"{self.server.url}/datasets/{name}", "id": name})
        elif path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif "/preupload/" in path:
            files = json.loads(text)["files"]
            chosen = [{"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in files]
            self._answer({"files": chosen})
        elif "/commit/" in path:
            self._take(dataset, [json.loads(line) for line in text.splitlines()])
            url = f"{self.server.url}/datasets/{dataset}/commit/{COMMIT}"
            self._answer({"commitUrl": url, "commitOid": COMMIT, "success": True})
        else:
            self._answer({}, 404)

    def _take(self, dataset: str, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            if line["key"] == "file":
                file = self.server.folder / dataset / line["value"]["path"]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(base64.b64decode(line["value"]["content"]))

    def _answer(self, value: Any, status: int = 200) -> None:
        status = self.server.refuse_with or status
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
