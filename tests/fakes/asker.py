"""An asker without an engine: for the `work` of a stage."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from tasks.foundation.errors import ModelError
from tasks.foundation.llm.chain import first_call
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers.scripted import from_schema
from tasks.foundation.llm.reply import BadReply, read
from tasks.foundation.llm.request import Request
from tasks.foundation.settings import Settings, load_settings
from tasks.foundation.stage import Asker

SCRIPTED = ModelSpec("scripted-a", "scripted", "unused:unused", "a")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as a fake asker saw it, and the inputs of its prompt."""

    request: Request
    inputs: Any

    @property
    def purpose(self) -> str:
        return self.request.purpose

    @property
    def alias(self) -> str:
        return self.request.alias

    @property
    def sample(self) -> int:
        return self.request.sample

    @property
    def system(self) -> str:
        return self.request.messages[0].content

    @property
    def user(self) -> str:
        return self.request.messages[-1].content


Answer = Callable[[Asked, type[BaseModel]], Any]
"""Gives plain data for a request, raises, or returns None for an answer made up from the schema."""


class FakeAsker(Asker):
    """Renders every prompt and checks every answer as the engine does; keeps what was asked. `answer` may be the same
    plain data for every request."""

    last_reply = ""

    def __init__(
        self, answer: Answer | Mapping[str, Any] = lambda asked, model: None, settings: Settings | None = None
    ) -> None:
        super().__init__("stage", "row", settings or load_settings("test", ["run.seed=0"]))
        self.asked: list[Asked] = []
        self._answer: Answer = (lambda asked, model: answer) if isinstance(answer, Mapping) else answer
        self._inputs: Any = None

    async def __call__(self, prompt: Any, inputs: BaseModel, **settings: Any) -> Any:
        self._inputs = inputs
        return await super().__call__(prompt, inputs, **settings)

    async def send(self, request: Request) -> Any:
        asked = Asked(request, self._inputs)
        self.asked.append(asked)
        assert request.reply is not None
        plain = self._answer(asked, request.reply)
        if plain is None:
            plain = json.loads(from_schema(replace(first_call(SCRIPTED, request, None), seed=0)))
        try:
            return read(json.dumps(plain), request.reply, "stop")
        except BadReply as trouble:
            raise ModelError(trouble.kind, trouble.sentence) from None

    def count(self, purpose: str) -> int:
        return sum(asked.purpose == purpose for asked in self.asked)
