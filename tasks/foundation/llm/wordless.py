"""A model none of whose replies has a word is a server that is set wrong, not a model that scores 0."""

from __future__ import annotations

from tasks.foundation.errors import FailureKind, ModelUnavailable
from tasks.foundation.llm.reply import clean, said_in

SURE = 20
"""So many replies without a word, and none with one, stop a run at once."""

FEWEST = 3
"""So many, and none with a word, stop a stage before it is committed; fewer may be chance."""


def is_wordless(kind: FailureKind | str | None, reply: str | None) -> bool:
    """Whether a request that failed with `kind` got a reply of thoughts alone, or an empty one. What a filter withheld
    is no such reply, nor is one that never came."""
    return kind in ("unreadable", "truncated") and reply is not None and not said_in(reply)


class Wordless:
    """The replies without a word of each model that has given no others."""

    def __init__(self) -> None:
        self._with_words: set[str] = set()
        self._without: dict[str, list[str]] = {}

    def count(self, alias: str, kind: FailureKind | str | None, reply: str | None) -> None:
        """Takes in how a request ended; ModelUnavailable when its model has replied often and never with a word."""
        if alias in self._with_words or reply is None:
            return
        if not is_wordless(kind, reply):
            self._with_words.add(alias)
            return
        replies = self._without.setdefault(alias, [])
        replies.append(reply)
        if len(replies) == SURE:
            raise mis_set(alias, replies)


def mis_set(alias: str, replies: list[str]) -> ModelUnavailable:
    """What to tell the user of a model all of whose replies are wordless."""
    thoughts = sum(bool(clean(reply)) for reply in replies)
    held = "are empty" if not thoughts else f"{thoughts} of them hold thoughts alone, the others are empty"
    if thoughts == len(replies):
        held = "hold thoughts alone"
    return ModelUnavailable(
        f"Model {alias!r} has not said a word: all {len(replies)} replies {held}. Its server is not set for this use, "
        "and nothing was scored. Switch thinking off (extra_body of its entry in configs/models.yaml, for many "
        "servers chat_template_kwargs: {enable_thinking: false}), or give it the tokens to think and then to answer "
        "(max_tokens of the stage). Where the server itself was mended, draw new replies with --fresh."
    )
