"""What every peer is asked to do: N structured requests, C in flight, against one endpoint.

Runs in the peers' own environments, so it needs only pydantic.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel

SYSTEM = "You judge."
MODEL = "stub"
API_KEY = "none"


class Verdict(BaseModel):
    reason: str
    score: int


def prompt(number: int) -> str:
    return f"Row {number}: is this good?"


def run(package: str, ask: Callable[[argparse.Namespace], list[Any]]) -> None:
    """Times `ask`, which returns one verdict a request, and prints the result as one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--folder", required=True, help="empty; for whatever the peer writes")
    options = parser.parse_args()
    started, busy = time.perf_counter(), cpu_seconds()
    verdicts = ask(options)
    seconds, busy = time.perf_counter() - started, cpu_seconds() - busy
    read = [Verdict.model_validate(verdict, from_attributes=True) for verdict in verdicts]
    if len(read) != options.requests or any(verdict.score != 7 for verdict in read):
        raise SystemExit(f"{package}: expected {options.requests} verdicts with score 7, got {len(read)}")
    found = {
        "peer": package,
        "version": version(package),
        "requests": options.requests,
        "in_flight": options.in_flight,
        "seconds": round(seconds, 3),
        "rate": round(options.requests / seconds, 1),
        "cpu_seconds": round(busy, 3),
    }
    print(json.dumps(found), flush=True)


def cpu_seconds() -> float:
    """What this process and its finished children have computed so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
