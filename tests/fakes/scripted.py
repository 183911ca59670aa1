"""A provider whose replies a test writes."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.foundation.llm.providers.scripted import Script, Scripted, answer
from tasks.foundation.llm.request import ProviderCall, RawReply


class ScriptedProvider:
    """Answers from `replies` in order, or from a callable; keeps the calls.

    A list that runs out raises AssertionError: an unexpected call is a fault of the test or the code.
    """

    def __init__(self, replies: Sequence[Scripted] | Script) -> None:
        self.calls: list[ProviderCall] = []
        self._script: Script = replies if callable(replies) else self._next
        self._waiting = [] if callable(replies) else list(replies)

    async def call(self, call: ProviderCall) -> RawReply:
        self.calls.append(call)
        return await answer(self._script, call)

    async def close(self) -> None:
        """Nothing to close."""

    def _next(self, call: ProviderCall) -> Scripted:
        if not self._waiting:
            raise AssertionError(f"The scripted replies ran out at call {len(self.calls)} ({call.model.alias}).")
        return self._waiting.pop(0)
