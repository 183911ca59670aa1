"""The rows of tests/data/provider_failures.yaml, and what a provider made of one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks.foundation.errors import ModelError, ModelUnavailable
from tasks.foundation.llm.failures import ProviderFailure
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.request import Message, ProviderCall, RawReply
from tasks.foundation.settings.strict_yaml import load_yaml

KEYS = {
    "openai": "sk-proj-SECRETsecret_SECRET-secret0123456789",
    "google": "AIzaSySECRETsecretSECRETsecret0123456789",
    "embedded": "",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One case. `raises`: the exception of llama.cpp's server object, its class and its words."""

    provider: str
    name: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    hex: str = ""
    does: str = ""
    raises: list[str] = field(default_factory=list)
    kind: str = ""
    retry_after: float | None = None
    stops: bool = False
    reply: list[str] = field(default_factory=list)

    @property
    def content(self) -> bytes:
        """The body as it is sent, with the key where it says KEY."""
        if self.hex:
            return bytes.fromhex(self.hex)
        text = self.body if isinstance(self.body, str) else json.dumps(self.body, ensure_ascii=False)
        return text.replace("KEY", KEYS[self.provider]).encode()

    @property
    def expected(self) -> tuple[Any, ...]:
        if self.reply:
            return ("reply", *self.reply)
        return ("stops",) if self.stops else (self.kind, self.retry_after)


def rows_of(provider: str) -> list[Row]:
    path = Path(__file__).parents[1] / "data" / "provider_failures.yaml"
    return [Row(**row) for row in load_yaml(path.read_text(encoding="utf-8")) if row["provider"] == provider]


def seen(outcome: RawReply | BaseException) -> tuple[Any, ...]:
    """What came of a call, in the form of `Row.expected`; anything that is no outcome of ours is raised."""
    match outcome:
        case RawReply():
            return ("reply", outcome.finish_reason, outcome.text)
        case ModelUnavailable():
            return ("stops",)
        case ProviderFailure():
            return (outcome.kind, outcome.retry_after_seconds)
        case ModelError():
            return (outcome.kind, None)
    raise outcome


def call_to(spec: ModelSpec) -> ProviderCall:
    return ProviderCall(spec, (Message("user", "hello"),), None, "", 0.3, 50, None, 0)
