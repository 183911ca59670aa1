"""Limits a minute that several processes share: taken from a common store in blocks, spent here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from tasks.foundation.llm.failures import brief

log = logging.getLogger(__name__)

BLOCK_SHARE = 1 / 30
"""Of a limit a minute that is borrowed at once: two seconds' worth."""


class Lender(Protocol):
    """The common store. `flows` has one that uses Prefect's global concurrency limits."""

    async def borrow(self, name: str, per_minute: float, amount: int) -> None:
        """Waits until `amount` units of the limit `name` (so many a minute, over all borrowers) are ours."""


class Loan:
    """Units of one shared limit in hand. `more` is called when a block has come."""

    def __init__(self, lender: Lender, name: str, per_minute: float, more: Callable[[], None]) -> None:
        self._lender = lender
        self._name = name
        self._per_minute = per_minute
        self._more = more
        self._block = max(1, int(per_minute * BLOCK_SHARE))
        self._in_hand = 0.0
        self._borrowing: asyncio.Task[None] | None = None
        self._alone = False

    def take(self, amount: float) -> bool:
        """Whether `amount` was in hand (it is then spent). A block is borrowed before the last one is used up."""
        if self._alone:
            return True
        enough = self._in_hand >= min(amount, self._block)
        if enough:
            self._in_hand -= amount
        if self._in_hand < self._block / 2 and self._borrowing is None:
            self._borrowing = asyncio.get_running_loop().create_task(self._borrow())
        return enough

    def give_back(self, amount: float) -> None:
        """Units that were taken and not used, for the next one here."""
        self._in_hand += amount

    async def _borrow(self) -> None:
        try:
            await self._lender.borrow(self._name, self._per_minute, self._block)
            self._in_hand += self._block
        except Exception as error:  # noqa: BLE001 - whatever the store's trouble: the own pace still holds
            log.warning(
                "shared limit %s cannot be asked (%s); this process keeps to the limit alone", self._name, brief(error)
            )
            self._alone = True
        finally:
            self._borrowing = None
        self._more()
