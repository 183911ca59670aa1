"""Runs one endpoint and, against it, one peer after the other, each in its own environment and process.

A result:

    {"peer": "bespokelabs-curator", "version": "0.1.31", "requests": 2000, "in_flight": 64,
     "seconds": 7.1, "rate": 281.7, "cpu_seconds": 6.9,
     "served": 2002, "peak_in_flight": 45, "serving_seconds": 5.9, "serving_rate": 339.0}

`seconds` and `rate` are those of the call that a user makes, from its rows to its table. `serving_rate` is the peer
at its best: from the first of its requests that the endpoint saw to the last answer, without start-up and without
what the peer does afterwards. `served` also counts what a peer sends to probe the endpoint.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .install import PEERS, installed, python_of

HERE = Path(__file__).parent
TIMEOUT_SECONDS = 600


def measure(in_flight: int = 64, requests: int = 2000, peers: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """One result a peer, in the order of `PEERS`. One that is absent or fails is left out, and a sentence on stderr
    says so; RuntimeError when the endpoint saw fewer requests than the peer claims to have sent."""
    results = []
    with endpoint() as url:
        for peer in peers or PEERS:
            if not installed(peer):
                _say(f"{peer} is not installed (make bench-peers): skipped.")
                continue
            ask_endpoint(url, "/reset", b"")
            if (found := _run(peer, url, in_flight, requests)) is None:
                continue
            seen = json.loads(ask_endpoint(url, f"/stats?last={requests}"))
            if seen["served"] < requests:
                raise RuntimeError(f"{peer}: expected {requests} requests at the endpoint, found {seen['served']}.")
            seen["serving_rate"] = round(requests / seen["serving_seconds"], 1)
            results.append(found | seen)
    return results


@contextmanager
def endpoint(*options: str) -> Iterator[str]:
    """The base URL of the endpoint in server.py (started with `options`), running in a process of its own."""
    with subprocess.Popen([sys.executable, HERE / "server.py", *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _run(peer: str, url: str, in_flight: int, requests: int) -> dict[str, Any] | None:
    """The line the peer's script prints; None when it fails. Home and working folder are empty ones, so that
    nothing is answered from a cache and nothing is left behind."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        script = HERE / f"with_{peer.replace('-', '_')}.py"
        command = [python_of(peer), script, "--url", url, "--folder", folder]
        command += ["--requests", str(requests), "--in-flight", str(in_flight)]
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "NO_PROXY": "127.0.0.1", "LANG": "C.UTF-8"}
        try:
            ended = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
            )
        except subprocess.TimeoutExpired:
            _say(f"{peer} was not done after {TIMEOUT_SECONDS} s: skipped.")
            return None
    if ended.returncode != 0:
        _say(f"{peer} failed: {ended.stderr.strip().splitlines()[-1:] or ended.returncode}: skipped.")
        return None
    return json.loads(ended.stdout.splitlines()[-1])


def ask_endpoint(url: str, path: str, data: bytes | None = None) -> bytes:
    """What the endpoint answers beside its API: /stats, /reset."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url.removesuffix("/v1") + path, data=data, timeout=30) as reply:
        return reply.read()


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
