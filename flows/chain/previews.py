"""What the first row of each local source becomes, read as a run reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from tasks.foundation.errors import ColloquyError
from tasks.foundation.settings import Settings
from tasks.foundation.settings.sections import PersonaSource, SceneSource, Source
from tasks.personas.preview import preview as preview_persona
from tasks.scenes.preview import preview as preview_dialogue

Previewed = TypeVar("Previewed", PersonaSource, SceneSource)


@dataclass(frozen=True, slots=True)
class Preview:
    """`what` a row of a source becomes, or why none does: then `error` is set."""

    source: Source
    what: str
    error: ColloquyError | None = None


def previews(settings: Settings) -> Iterator[Preview]:
    """One for each source of personas and dialogues; those of the hub are not read."""
    for persona in settings.personas.sources:
        yield _of(persona, preview_persona)
    for scene in settings.scenes.sources:
        yield _of(scene, preview_dialogue)


def _of(source: Previewed, make: Callable[[Previewed], str]) -> Preview:
    if source.file is None:
        return Preview(source, f"{source.hub} is read from the hub when a run needs it")
    try:
        return Preview(source, make(source))
    except ColloquyError as error:
        return Preview(source, str(error), error)
