"""The list of batch jobs on disk, the rule by which calls are cut into jobs, and the lines of outputs."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation.errors import ConfigError, ModelUnavailable, StoreError
from tasks.foundation.llm.batch import JobStatus, Refusal, Result
from tasks.foundation.llm.batch.job_client import JobClient
from tasks.foundation.llm.batch.job_store import KEPT, Item, Job, JobStore
from tasks.foundation.llm.batch.model_queue import Collector, PendingCall
from tasks.foundation.llm.batch.transport import BatchProgress, make_batch_api
from tasks.foundation.llm.failures import ProviderFailure
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers.google_genai import GeminiBatches
from tasks.foundation.llm.providers.openai_compatible import OpenAIBatches
from tasks.foundation.llm.request import Message, ProviderCall, RawReply, Usage
from tests.fakes.batch_servers import KEY

JOB = Job("tag-1", "openai", "http://here/v1", "SOME_KEY", None, "gpt-x")
OTHER = replace(JOB, tag="tag-2")
REPLY = RawReply("早\ud800", Usage(1, 2, 3, None), "stop", "gpt-x-2026", None, 60.0)


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path / "cache" / "batches.sqlite")


def test_a_key_is_in_one_job_at_most(store: JobStore) -> None:
    assert store.claim(JOB, ["a", "b"]) == {"a", "b"}
    assert JobStore(store.path).claim(OTHER, ["b", "c"]) == {"c"}
    assert [(job.tag, job.requests, job.state) for job in store.open_jobs()] == [
        ("tag-1", 2, "intended"),
        ("tag-2", 1, "intended"),
    ]
    assert store.items(["a", "b", "c", "d"]) == {
        "a": Item("tag-1", None),
        "b": Item("tag-1", None),
        "c": Item("tag-2", None),
    }


def test_a_job_without_requests_of_its_own_is_not_stored(store: JobStore) -> None:
    store.claim(JOB, ["a"])
    assert store.claim(OTHER, ["a"]) == set()
    assert store.job("tag-2") is None


def test_replies_and_failures_come_back_as_they_were(store: JobStore) -> None:
    store.claim(JOB, ["a", "b", "c", "d"])
    store.mark_submitted("tag-1", "batch_1")
    failed, gone = ProviderFailure("server", "HTTP 500"), ModelUnavailable("no such model")
    results = [Result("a", REPLY), Result("b", failed), Result("c", gone), Result("d", None), Result("z", REPLY)]
    store.keep("tag-1", results)
    store.keep("tag-1", [Result("a", replace(REPLY, text="another"))])
    store.end("tag-1", "completed")
    items = JobStore(store.path).items(["a", "b", "c", "d", "z"])
    assert sorted(items) == ["a", "b", "c"]
    assert items["a"] == Item("tag-1", REPLY)
    assert [described(items[key].outcome) for key in "bc"] == [("server", "HTTP 500"), (None, "no such model")]
    job = store.job("tag-1")
    assert job is not None
    assert (job.state, job.name, job.outcome, job.failure) == ("ended", "batch_1", "completed", None)
    assert store.claim(OTHER, ["a", "b", "c", "d"]) == {"b", "c", "d"}


def described(outcome: Any) -> tuple[str | None, str]:
    return getattr(outcome, "kind", None), str(outcome)


def test_a_job_that_was_never_taken_leaves_no_trace(store: JobStore) -> None:
    store.claim(JOB, ["a"])
    store.drop("tag-1")
    assert store.job("tag-1") is None and store.items(["a"]) == {}


def test_the_first_to_end_a_job_says_how_it_ended(store: JobStore) -> None:
    store.claim(JOB, ["a"])
    store.mark_submitted("tag-1", "batch_1")
    store.end("tag-1", "cancelled", ModelUnavailable("stopped"))
    store.end("tag-1", "completed")
    job = store.job("tag-1")
    assert job is not None and job.outcome == "cancelled" and described(job.failure) == (None, "stopped")


def test_answers_stay_until_the_reply_cache_has_them_and_a_day_is_over(store: JobStore) -> None:
    store.claim(JOB, ["cached", "paid for", "failed"])
    store.mark_submitted("tag-1", "batch_1")
    results = [Result("cached", REPLY), Result("paid for", REPLY), Result("failed", ProviderFailure("server", "x"))]
    store.keep("tag-1", results)
    store.end("tag-1", "completed")
    now = datetime.now(UTC)
    assert store.prune(lambda key: key == "cached", now) == 0
    assert store.prune(lambda key: key == "cached", now + KEPT + timedelta(minutes=1)) == 2
    assert list(store.items(["cached", "paid for", "failed"])) == ["paid for"]


def test_a_file_that_is_no_list_of_jobs_is_a_store_error(tmp_path: Path) -> None:
    path = tmp_path / "batches.sqlite"
    path.write_text("not a database, and long enough to be read as one" * 100)
    with pytest.raises(StoreError, match=r"batches\.sqlite cannot be opened"):
        JobStore(path)


CALL = ProviderCall(ModelSpec("m", "openai", "gpt-x", "gpt"), (Message("user", "hi"),), None, "", 0.0, 10, None, 0)


def pending(key: str, size: int = 10, callers: int = 1) -> PendingCall:
    return PendingCall(key, CALL, asyncio.get_running_loop().create_future(), b"x" * size, callers)


async def test_a_job_is_cut_by_requests_then_by_bytes_first_come_first_served() -> None:
    collector = Collector(3, 100, 60.0)
    collector.add(
        [
            pending("a", 40),
            pending("b", 60),
            pending("c", 1),
            pending("d", 300),
            pending("e", 1),
            pending("f"),
            pending("g"),
        ]
    )
    await collector.ready()
    cuts = []
    while collector:
        cuts.append([each.key for each in collector.cut()[0]])
    assert cuts == [["a", "b"], ["c"], ["d"], ["e", "f", "g"]]


async def test_two_processes_can_read_the_output_of_one_job_at_once(store: JobStore, tmp_path: Path) -> None:
    class Api:
        """Hands out one line; while the first reader has it, a second one reads it all and tidies up."""

        readers = 0

        async def download(self, file: str, path: Path) -> None:
            path.write_bytes(b"a\n")
            self.readers += 1
            if self.readers == 1:
                assert (await client.import_output(JOB, status)).answered == 1
                with client.owning(JOB.tag):
                    pass

        def read(self, line: bytes) -> Result:
            return Result(line.decode().strip(), REPLY)

    client = JobClient(Api(), store, tmp_path, 0.01, asyncio.sleep)  # type: ignore[arg-type]
    status = JobStatus("completed", files=("output",), seconds=60.0)
    store.claim(JOB, ["a"])
    assert (await client.import_output(JOB, status)).answered == 1
    assert store.items(["a"]) == {"a": Item("tag-1", REPLY)}
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


async def test_calls_that_nobody_waits_for_are_in_no_job() -> None:
    collector = Collector(2, 100, 60.0)
    collector.add([pending("a", callers=0), pending("b"), pending("c", callers=0), pending("d")])
    job, unwanted = collector.cut()
    assert ([each.key for each in job], [each.key for each in unwanted]) == (["b", "d"], ["a", "c"])


@pytest.fixture(scope="module")
def apis() -> tuple[OpenAIBatches, GeminiBatches]:
    common: Any = {"api_key_env": "STUB_KEY", "base_url": "http://localhost:1/v1"}
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("STUB_KEY", KEY)
        return (
            OpenAIBatches(ModelSpec("a", "openai", "gpt-x", "gpt", **common)),
            GeminiBatches(ModelSpec("b", "google", "gemini-x", "gemini", **common)),
        )


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"error": {"code": 3, "message": "input token count exceeds the maximum"}}, "context_overflow"),
        ({"error": {"code": 8, "message": "later"}}, "rate_limited"),
        ({"error": {"code": 4, "message": "slow"}}, "timeout"),
        ({"error": {"code": 503, "message": "HTTP's own number"}}, "server"),
        ({"status": {"code": 13}}, "server"),
        ({"error": {"code": 16, "message": "who?"}}, None),
        ({}, "server"),
        ({"response": {}}, "server"),
        ({"response": {"error": {"code": 400, "message": "no"}}}, "refused"),
    ],
)
def test_a_failed_line_of_gemini_is_one_kind_of_failure(apis: Any, line: Any, kind: str | None) -> None:
    outcome = apis[1].read(json.dumps({"key": "k"} | line).encode()).outcome
    assert isinstance(outcome, Refusal) and getattr(outcome, "kind", None) == kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"response": {"status_code": 429, "body": {"error": {"message": "later"}}}}, "rate_limited"),
        (
            {"response": {"status_code": 400, "body": {"error": {"code": "context_length_exceeded"}}}},
            "context_overflow",
        ),
        ({"response": {"status_code": 400, "body": {"error": {"code": "model_not_found"}}}}, None),
        ({"response": {"status_code": 500, "body": {}}}, "server"),
        ({"response": {"status_code": 200, "body": {"error": {"code": 429, "message": "later"}}}}, "rate_limited"),
        ({"response": {"status_code": 200, "body": {}}}, "server"),
        ({"response": None, "error": {"code": "request_timeout", "message": "slow"}}, "timeout"),
        ({"response": None, "error": None}, "server"),
    ],
)
def test_a_failed_line_of_openai_is_one_kind_of_failure(apis: Any, line: Any, kind: str | None) -> None:
    outcome = apis[0].read(json.dumps({"custom_id": "k"} | line).encode()).outcome
    assert isinstance(outcome, Refusal) and getattr(outcome, "kind", None) == kind


@pytest.mark.parametrize("code", ["batch_expired", "batch_cancelled"])
def test_a_line_that_was_never_run_is_no_failure(apis: Any, code: str) -> None:
    line = {"custom_id": "k", "response": None, "error": {"code": code, "message": "x"}}
    assert apis[0].read(json.dumps(line).encode()) == Result("k", None)


def test_a_cut_off_or_filtered_line_is_a_reply_with_its_usage(apis: Any) -> None:
    body = {"choices": [{"finish_reason": "length", "message": {"content": "half"}}], "usage": {"prompt_tokens": 5}}
    line = {"custom_id": "k", "response": {"status_code": 200, "body": body}, "error": None}
    reply = apis[0].read(json.dumps(line).encode()).outcome
    assert (reply.text, reply.finish_reason, reply.usage.prompt_tokens) == ("half", "length", 5)
    filtered = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 7}}
    reply = apis[1].read(json.dumps({"key": "k", "response": filtered}).encode()).outcome
    assert (reply.finish_reason, reply.usage.prompt_tokens) == ("content_filter", 7)


def test_only_openai_and_gemini_have_batches() -> None:
    with pytest.raises(ConfigError, match="mode: batch of embedded"):
        make_batch_api(ModelSpec("m", "embedded", "x", "f"))


def test_progress_says_what_is_open_and_what_is_done() -> None:
    progress = BatchProgress(jobs_open=2, gathering=120, in_jobs=10_000, done_in_jobs=3_400, completed=5_000)
    assert progress.sentence() == ("2 batch jobs open (3,400 of 10,000 requests done), 120 gathering, 5,000 completed")
