"""Local servers that speak the batch protocols of OpenAI and Gemini, and misbehave as a test asks.

Both answer a live call and a line of a job's file with the same words, made from the last user message.
They count how often each key was put into a job that was not refused: what a provider would charge for.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fakes.http import listening

KEY = "sk-test-SECRETSECRETSECRET"

Ending = Callable[[str, int], str]
"""From a request's last user message and how often it was asked before to what becomes of it: `answered`,
`failed <status>`, `expired`, `missing` or `twice`."""


def words_for(message: str) -> str:
    """The reply to a user message: JSON with a score."""
    return json.dumps({"score": sum(message.encode()) % 10 + 1, "why": f"说明\u2028{message}"}, ensure_ascii=False)


@dataclass
class BatchServer(ABC):
    """A provider. Jobs run for `polls` questions, then end in the state `ends`."""

    ending: Ending = lambda message, asked: "answered"
    reply: Callable[[str], str] = words_for
    polls: int = 1
    ends: str = "completed"
    refuses: list[dict[str, Any]] = field(default_factory=list)
    """Whole jobs thrown out by validation, one after another: `{"code": …, "message": …}`."""
    creation: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Answers to the next creations instead of a job: status and headers."""
    creates_then_fails: int = 0
    """So many creations make a job, and answer 500."""
    polling: list[int] = field(default_factory=list)
    """Statuses of the next questions after a job."""
    unknown_lines: list[dict[str, Any]] = field(default_factory=list)
    raw_lines: list[str] = field(default_factory=list)
    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    uploads: list[bytes] = field(default_factory=list)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    charged: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    polled: int = 0
    live_bodies: list[dict[str, Any]] = field(default_factory=list)
    on_created: Callable[[], None] = lambda: None

    @property
    def sizes(self) -> list[int]:
        """Requests in each job, in order."""
        return [len(job["requests"]) for job in self.jobs.values()]

    @property
    def paid_twice(self) -> list[str]:
        return [key for key, times in self.charged.items() if times > 1]

    def add(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    def begin(self, file: str, tag: str) -> str:
        self.uploads.append(self.files[file])
        requests = [json.loads(line) for line in self.files[file].split(b"\n") if line]
        job = {"tag": tag, "requests": requests, "polls": self.polls, "created": time.time() - 90}
        if self.refuses:
            job["refusal"] = self.refuses.pop(0)
        name = f"job-{len(self.jobs)}"
        self.jobs[name] = job
        self.on_created()
        return name

    def step(self, job: dict[str, Any]) -> str:
        """The job's state after one more question; its output is made when it ends."""
        self.polled += 1
        if "state" not in job and job["polls"] > 0 and "refusal" not in job:
            job["polls"] -= 1
            return "running"
        if "state" not in job:
            job["state"] = "failed" if "refusal" in job else self.ends
            job["ended"] = job["created"] + 60
            if job["state"] != "failed":
                self.finish(job)
        return str(job["state"])

    @abstractmethod
    def finish(self, job: dict[str, Any]) -> None:
        """Makes the output of a job that ends, in the provider's form."""

    def outcome(self, message: str) -> str:
        ending = self.ending(message, self.asked[message])
        self.asked[message] += 1
        return ending

    def joined(self, lines: list[dict[str, Any]]) -> bytes:
        texts = [json.dumps(line, ensure_ascii=False) for line in lines] + self.raw_lines
        return "".join(text + "\n" for text in texts).encode()


class OpenAIServer(BatchServer):
    """Files, batches and chat completions under /v1."""

    provider = "openai"

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/files", self.upload),
            web.get("/v1/files/{name}/content", self.content),
            web.post("/v1/batches", self.create),
            web.get("/v1/batches", self.list),
            web.get("/v1/batches/{name}", self.retrieve),
            web.post("/v1/chat/completions", self.live),
        ]

    async def upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        name = self.add(form["file"].file.read())  # type: ignore[union-attr]
        return web.json_response(
            {
                "id": name,
                "object": "file",
                "bytes": 1,
                "created_at": 1,
                "filename": "f",
                "purpose": "batch",
                "status": "processed",
            }
        )

    async def create(self, request: web.Request) -> web.Response:
        body = await request.json()
        assert (body["endpoint"], body["completion_window"]) == ("/v1/chat/completions", "24h")
        if self.creation:
            status, headers = self.creation.pop(0)
            return _error(status, headers)
        name = self.begin(body["input_file_id"], body["metadata"]["colloquy_tag"])
        if self.creates_then_fails:
            self.creates_then_fails -= 1
            return _error(500)
        return web.json_response(self.batch(name, "validating"))

    async def list(self, request: web.Request) -> web.Response:
        names = list(reversed(self.jobs))
        start = names.index(request.query["after"]) + 1 if "after" in request.query else 0
        page = names[start : start + 2]
        data = [self.batch(name, self.jobs[name].get("state", "in_progress")) for name in page]
        last = page[-1] if page else None
        return web.json_response({"object": "list", "data": data, "has_more": len(page) == 2, "last_id": last})

    async def retrieve(self, request: web.Request) -> web.Response:
        if self.polling:
            return _error(self.polling.pop(0))
        name = request.match_info["name"]
        if name not in self.jobs:
            return _error(404)
        state = self.step(self.jobs[name])
        return web.json_response(self.batch(name, "in_progress" if state == "running" else state))

    async def content(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["name"]])

    async def live(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.live_bodies.append(body)
        return web.json_response(self.completion(body))

    def batch(self, name: str, status: str) -> dict[str, Any]:
        job = self.jobs[name]
        batch = {
            "id": name,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "input_file_id": "file-0",
            "created_at": int(job["created"]),
            "status": status,
            "metadata": {"colloquy_tag": job["tag"]},
            "request_counts": {"total": len(job["requests"]), "completed": 1, "failed": 0},
        }
        if "ended" in job:
            batch[f"{status}_at"] = int(job["created"]) + 60
        batch |= {name: job[name] for name in ("output_file_id", "error_file_id") if name in job}
        if "refusal" in job:
            batch["errors"] = {"object": "list", "data": [job["refusal"] | {"line": None, "param": None}]}
        return batch

    def finish(self, job: dict[str, Any]) -> None:
        output: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        for line in reversed(job["requests"]):
            key, body = line["custom_id"], line["body"]
            ending = self.outcome(body["messages"][-1]["content"])
            answer = {"custom_id": key, "response": {"status_code": 200, "body": self.completion(body)}, "error": None}
            if ending in ("answered", "twice"):
                self.charged[key] += 1
                output += [answer, answer | {"response": {"status_code": 500, "body": {}}}][: 1 + (ending == "twice")]
            elif ending.startswith("failed"):
                status = int(ending.split()[1])
                error = {"error": {"message": "no luck", "type": "x", "code": None}}
                errors.append({"custom_id": key, "response": {"status_code": status, "body": error}, "error": None})
            elif ending == "expired":
                expired = {"code": "batch_expired", "message": "not run in time"}
                errors.append({"custom_id": key, "response": None, "error": expired})
        job["output_file_id"] = self.add(self.joined(output + self.unknown_lines))
        if errors:
            job["error_file_id"] = self.add(self.joined(errors))

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.reply(body["messages"][-1]["content"])}
        return {
            "model": f"{body['model']}-2026",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28},
        }


class GeminiServer(BatchServer):
    """Resumable uploads, batches and generateContent under /v1beta."""

    provider = "google"

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/upload/v1beta/files", self.start_upload),
            web.post("/upload-here", self.upload),
            web.get("/v1beta/files/{name}", self.content),
            web.get("/v1beta/batches", self.list),
            web.get("/v1beta/batches/{name}", self.get),
            web.post("/v1beta/models/{call}", self.model),
        ]

    async def start_upload(self, request: web.Request) -> web.Response:
        assert request.headers["X-Goog-Upload-Header-Content-Type"] == "application/jsonl"
        return web.json_response({}, headers={"X-Goog-Upload-URL": f"{self.url}/upload-here"})

    async def upload(self, request: web.Request) -> web.Response:
        name = self.add(await request.read())
        return web.json_response({"file": {"name": f"files/{name}"}}, headers={"X-Goog-Upload-Status": "final"})

    async def model(self, request: web.Request) -> web.Response:
        body = await request.json()
        if request.match_info["call"].endswith(":generateContent"):
            self.live_bodies.append(body)
            return web.json_response(self.response(body))
        assert request.match_info["call"] == "gemini-x:batchGenerateContent"
        if self.creation:
            status, headers = self.creation.pop(0)
            return _error(status, headers)
        batch = body["batch"]
        name = self.begin(batch["inputConfig"]["fileName"].removeprefix("files/"), batch["displayName"])
        if self.creates_then_fails:
            self.creates_then_fails -= 1
            return _error(500)
        return web.json_response(self.operation(name, "running"))

    async def list(self, request: web.Request) -> web.Response:
        names = list(reversed(self.jobs))
        start = int(request.query.get("pageToken") or 0)
        page = {"operations": [self.operation(name, "running") for name in names[start : start + 2]]}
        if start + 2 < len(names):
            page["nextPageToken"] = str(start + 2)  # type: ignore[assignment]
        return web.json_response(page)

    async def get(self, request: web.Request) -> web.Response:
        if self.polling:
            return _error(self.polling.pop(0))
        name = request.match_info["name"]
        if name not in self.jobs:
            return _error(404)
        return web.json_response(self.operation(name, self.step(self.jobs[name])))

    async def content(self, request: web.Request) -> web.Response:
        assert request.query["alt"] == "media"
        return web.Response(body=self.files[request.match_info["name"].removesuffix(":download")])

    def operation(self, name: str, state: str) -> dict[str, Any]:
        job = self.jobs[name]
        word = "SUCCEEDED" if state == "completed" else state.upper()
        metadata = {"displayName": job["tag"], "state": f"BATCH_STATE_{word}", "createTime": _time(job["created"])}
        if "ended" in job:
            metadata["endTime"] = _time(job["created"] + 60)
        if "output" in job:
            metadata["output"] = {"responsesFile": f"files/{job['output']}"}
        operation = {"name": f"batches/{name}", "metadata": metadata}
        if "refusal" in job:
            operation["error"] = job["refusal"]
        return operation

    def finish(self, job: dict[str, Any]) -> None:
        lines: list[dict[str, Any]] = []
        for line in job["requests"]:
            key, body = line["key"], line["request"]
            ending = self.outcome(body["contents"][-1]["parts"][0]["text"])
            answer = {"key": key, "response": self.response(body)}
            if ending in ("answered", "twice"):
                self.charged[key] += 1
                lines += [answer, {"key": key, "error": {"code": 13}}][: 1 + (ending == "twice")]
            elif ending.startswith("failed"):
                code = {429: 8, 500: 13, 400: 3}[int(ending.split()[1])]
                lines.append({"key": key, "error": {"code": code, "message": "no luck"}})
        job["output"] = self.add(self.joined(lines + self.unknown_lines))

    def response(self, body: dict[str, Any]) -> dict[str, Any]:
        text = self.reply(body["contents"][-1]["parts"][0]["text"])
        return {
            "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 8},
            "modelVersion": "gemini-x-2026",
        }


@asynccontextmanager
async def serving(server: BatchServer) -> AsyncIterator[BatchServer]:
    """The server at `server.url`; it refuses every other key than `KEY`."""

    @web.middleware
    async def with_key(request: web.Request, handler: Any) -> web.StreamResponse:
        shown = request.headers.get("Authorization", request.headers.get("x-goog-api-key", ""))
        if not shown.endswith(KEY) and request.path != "/upload-here":
            return _error(401, message=f"Incorrect API key provided: {shown}")
        return await handler(request)  # type: ignore[no-any-return]

    app = web.Application(middlewares=[with_key], client_max_size=2**30)
    app.add_routes(server.routes())  # type: ignore[attr-defined]
    async with listening(app) as server.url:
        yield server


def _error(status: int, headers: dict[str, str] | None = None, message: str = "no luck") -> web.Response:
    return web.json_response(
        {"error": {"code": status, "message": message, "status": "X"}}, status=status, headers=headers
    )


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
