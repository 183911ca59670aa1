"""The gates of a process: one for each (provider, model, base URL, key), whoever asks."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from tasks.foundation.ids import digest
from tasks.foundation.llm.limits.gate import Gate
from tasks.foundation.llm.limits.lender import Lender
from tasks.foundation.llm.request import ModelSpec

Key = tuple[str, str, str | None, str | None]


class Gates:
    """Makes each gate on first use and keeps it, with all that it has learned.

    `lender` shares limits a minute with other processes; None: this process has them to itself.
    """

    def __init__(self, *, minute: float = 60.0, lender: Lender | None = None) -> None:
        self._lender = lender
        self._minute = minute
        self._gates: dict[Key, Gate] = {}

    def of(self, spec: ModelSpec, *, base_pause_seconds: float, outage_seconds: float) -> Gate:
        """The gate of a model; the patience is that of whoever asked last."""
        key = (spec.provider, spec.name, spec.base_url, spec.api_key_env)
        gate = self._gates.get(key)
        if gate is None:
            gate = self._gates[key] = Gate(
                spec.name,
                max_in_flight=spec.max_in_flight,
                requests_per_minute=spec.requests_per_minute,
                tokens_per_minute=spec.tokens_per_minute,
                minute=self._minute,
                lender=self._lender,
                shared_as=f"{spec.name}-{digest(key)[:6]}",
            )
        gate.set_cap(spec.max_in_flight)
        gate.base_pause_seconds, gate.outage_seconds = base_pause_seconds, outage_seconds
        return gate

    def share(self, lender: Lender) -> None:
        """From now on new gates share their limits a minute with other processes; the first lender stays."""
        self._lender = self._lender or lender

    def describe(self) -> list[str]:
        """Why models are not being asked at this moment, one sentence each."""
        return [reason for gate in self._gates.values() if (reason := gate.describe())]


_OF_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, Gates] = WeakKeyDictionary()


def gates_of_process() -> Gates:
    """The gates that all stages and shards of this process (its running event loop) share."""
    loop = asyncio.get_running_loop()
    if loop not in _OF_LOOP:
        _OF_LOOP[loop] = Gates()
    return _OF_LOOP[loop]
