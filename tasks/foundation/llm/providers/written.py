"""Replies written beforehand, for a tour of the pipeline without models: they read like talk and mean nothing.

`reply` is a script (see `scripted`). Texts come from configs/sample/replies.yaml: a reply goes on with the story that
its prompt tells already, so that goals, dialogue and summaries belong together; what is not written there, and every
label and score, is drawn as by `scripted.from_schema`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tasks.foundation import CONFIGS
from tasks.foundation.ids import seed_of
from tasks.foundation.llm.providers.scripted import Plausible
from tasks.foundation.llm.request import ProviderCall
from tasks.foundation.llm.schema_filler import Schema
from tasks.foundation.settings.strict_yaml import load_yaml

REPLIES = CONFIGS / "sample" / "replies.yaml"

SAID = ("text", "content")
"""Fields with a line of a story."""
ASKED = ("first_query", "user_text")
"""Fields with a line of the user of a chat; the assistant's have no field."""

Story = Mapping[str, Any]


def reply(call: ProviderCall) -> str:
    """JSON that fits the call's schema, or the assistant's next line: the same for the same call anywhere."""
    messages = [[message.role, message.content] for message in call.messages]
    source = random.Random(seed_of("written", call.model.extra_body.get("voice"), messages, call.seed, call.sample))
    filler = _Written(source, [message.content for message in call.messages])
    if call.schema is None:
        return filler.line(filler.chat, by=1)
    return json.dumps(filler.fill(call.schema), ensure_ascii=False)


@cache
def _replies() -> Mapping[str, Any]:
    found: Mapping[str, Any] = load_yaml(REPLIES.read_text(encoding="utf-8"))
    return found


class _Written(Plausible):
    """Of stories, chats and people one each, for a whole reply; lines that were said are not said again."""

    def __init__(self, source: random.Random, messages: Sequence[str]) -> None:
        super().__init__(source, messages[0])
        self._told = "\n".join(messages)
        replies = _replies()["zh" if self.in_chinese else "en"]
        self._words = replies["words"]
        self.story, self.chat = (self._choose_told(replies[kind]) for kind in ("stories", "chats"))
        self._person = source.choice(replies["people"])
        self._of_chat = False
        self._speaks_first = True

    def fill(self, schema: Schema) -> Any:
        self._of_chat = "final_intent" in schema.get("properties", {})
        return super().fill(schema)

    def write(self, shortest: int, longest: int, name: str) -> str:
        if name in SAID:
            return self.line(self.story)
        if name in ASKED:
            return self.line(self.chat, by=0)
        for some in (self.chat if self._of_chat else self.story, self._person):
            if name in some:
                return str(some[name])
        if name in self._words:
            return str(self.source.choice(self._words[name]))
        return super().write(shortest, longest, name)

    def line(self, story: Story, by: int | None = None) -> str:
        """The next line that was not said, `by` the first (0) or the second (1) of the two; the last where all were."""
        lines: list[str] = story["lines"] if by is None else story["lines"][by::2]
        found = next((line for line in lines if line not in self._told), lines[-1])
        self._told += f"\n{found}"
        return found

    def _value(self, schema: Schema, name: str, depth: int) -> Any:
        """Of a dialogue's two, the speakers take turns."""
        if name != "speaker":
            return super()._value(schema, name, depth)
        self._speaks_first = not self._speaks_first
        return 2 if self._speaks_first else 1

    def _choose_told(self, stories: Sequence[Story]) -> Story:
        """The one that most is told of already; of several, one that is drawn."""
        told = [sum(text in self._told for text in _texts(story)) for story in stories]
        return self.source.choice([story for story, n in zip(stories, told, strict=True) if n == max(told)])


def _texts(story: Story) -> list[str]:
    return [*story["lines"], *(text for text in story.values() if isinstance(text, str))]
