"""What the first usable row of a persona source becomes."""

from __future__ import annotations

from tasks.foundation.errors import SourceError
from tasks.foundation.settings.sections import PersonaSource
from tasks.personas.readers import READERS
from tasks.personas.readers.reading import Persona, Reading

TRIED_ROWS = 100
SHOWN_TEXT = 100
SHOWN = ("name", "age", "age_bucket", "sex", "occupation", "city", "country", "hobbies")


def preview(source: PersonaSource) -> str:
    """One line: what is known of a persona, and how it is described. Reads the first rows; SourceError where none of
    them is usable, with the reason of the first."""
    reading = Reading(source.pool)
    limit = min(TRIED_ROWS, source.limit or TRIED_ROWS)
    made = READERS[source.reader]([source.model_copy(update={"limit": limit})], reading)
    persona = next((each for each in made if each is not None), None)
    if persona is None:
        first = next((f"{each.row_key}: {each.reason}" for each in reading.rejects), "left out by `where`")
        raise SourceError(
            f"source {source.name}: none of its first {reading.n_in} rows can be used. The first, {first}."
        )
    return f"{persona.source_key[:40]!r} is {_known(persona)}; {persona.description[:SHOWN_TEXT]!r}"


def _known(persona: Persona) -> str:
    known = {name: getattr(persona, name) for name in SHOWN if getattr(persona, name) not in (None, ())}
    texts = [f"{name} {', '.join(value) if isinstance(value, tuple) else value}" for name, value in known.items()]
    return ", ".join(["language " + persona.language, *texts])
