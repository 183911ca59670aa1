"""A model's limits a minute, shared by workers on several machines through Prefect's global concurrency limits.

Asking the server takes a tenth of a second, so quota is taken in blocks of two seconds' worth, and spent in the
process. The limits appear under Concurrency in the Prefect UI; their sizes follow configs/models.yaml.
"""

from __future__ import annotations

import asyncio
import re

import httpx
from prefect.client.orchestration import get_client

SECONDS_A_MINUTE = 60.0
LONGEST_NAP_SECONDS = 5.0
"""A block may be had before the server thinks so: it is asked again after this long at most."""


class PrefectLimits:
    """Limits of requests and tokens that all workers of one Prefect server share (see `SharedLimits`)."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    async def acquire(self, name: str, per_minute: float, amount: int) -> None:
        """Waits until `amount` units are ours. The limit is made, or brought up to date, when it is first asked for."""
        limit = limit_name(name)
        async with get_client() as client:
            if limit not in self._known:
                await client.upsert_global_concurrency_limit_by_name(limit, amount, decay_of(per_minute, amount))
                self._known.add(limit)
            while True:
                try:
                    await client.increment_concurrency_slots([limit], amount, "rate_limit")
                    return
                except httpx.HTTPStatusError as error:
                    if error.response.status_code != httpx.codes.LOCKED:
                        raise
                    seconds = float(error.response.headers.get("Retry-After", LONGEST_NAP_SECONDS))
                await asyncio.sleep(min(seconds, LONGEST_NAP_SECONDS))


def limit_name(name: str) -> str:
    """
    >>> limit_name("Qwen/Qwen2-72B-Instruct/requests")
    'colloquy.qwen-qwen2-72b-instruct-requests'
    """
    return "colloquy." + re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def decay_of(per_minute: float, block: int) -> float:
    """Units that come back each second, so that no minute sees more than the limit with one block in the bucket."""
    return max(per_minute - block, per_minute / 2) / SECONDS_A_MINUTE
