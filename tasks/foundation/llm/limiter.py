"""How much one model is asked at once. The place for requests and tokens a minute, too, when they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Limiter:
    """At most `max_in_flight` calls to one (provider, model, base URL); a pause holds back new ones.

    Belongs to one event loop. Waiting callers go first come, first served.
    """

    def __init__(self, max_in_flight: int) -> None:
        self._slots = asyncio.Semaphore(max_in_flight)
        self._resume_at = 0.0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Holds one place for the length of the block."""
        async with self._slots:
            await self._wait_out_pause()
            yield

    def pause(self, seconds: float) -> None:
        """No new call starts for this long (a provider's Retry-After speaks for all requests)."""
        self._resume_at = max(self._resume_at, asyncio.get_running_loop().time() + seconds)

    async def _wait_out_pause(self) -> None:
        loop = asyncio.get_running_loop()
        while (left := self._resume_at - loop.time()) > 0:  # noqa: ASYNC110 - the end may move while it sleeps
            await asyncio.sleep(left)
