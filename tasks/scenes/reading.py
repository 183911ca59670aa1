"""What a reader of dialogues hands over: a two-party dialogue, or why a row is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tasks.foundation.ids import canonical_json, content_id
from tasks.foundation.sources import SourceRow
from tasks.foundation.sources.script import language_of
from tasks.foundation.tables.operations import Reject
from tasks.foundation.tables.scenes import SeedDialogue, SeedTurn

STAGE_NAME = "scenes"
NO_SPLIT = "all"
SHOWN_PAYLOAD = 4000
"""Characters of a rejected row kept as its payload."""

Filter = Literal["not_two_party", "too_short", "too_long", "url", "advert"]


class BadRow(Exception):
    """A source row of the wrong shape; ends as a `schema` reject."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unwanted(Exception):
    """A dialogue that is well formed but not wanted; ends as a `filter` reject, counted by `why`."""

    def __init__(self, why: Filter, reason: str) -> None:
        super().__init__(reason)
        self.why: Filter = why
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SourceDialogue:
    """One dialogue as its reader understood it."""

    speakers: Sequence[str]
    texts: Sequence[str]
    narrative: str | None = None
    split: str | None = None


def as_seed(dialogue: SourceDialogue, corpus: str, index: int, licence: str) -> SeedDialogue:
    """The row of a dialogue; its id is a hash over corpus and turns."""
    turns = [SeedTurn(speaker=who, text=text) for who, text in zip(dialogue.speakers, dialogue.texts, strict=True)]
    return SeedDialogue(
        seed_id=content_id("seed", corpus, [[turn.speaker, turn.text] for turn in turns]),
        corpus=corpus,
        split=dialogue.split or NO_SPLIT,
        source_index=index,
        language=language_of(" ".join(dialogue.texts)),
        turns=turns,
        turn_count=len(turns),
        narrative=dialogue.narrative,
        licence=licence,
    )


def texts_of(value: Any, column: str) -> list[str]:
    """A list of utterances, none empty; BadRow for anything else."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BadRow(f"expected a list of utterances in {column}, found {str(value)[:80]!r}")
    empty = [number for number, text in enumerate(value, start=1) if not text.strip()]
    if empty:
        raise BadRow(f"expected text in every utterance, found number {empty[0]} of {len(value)} empty")
    return value


def speakers_of(value: Any, texts: Sequence[str]) -> list[str]:
    """The speaker of each utterance; BadRow when there is not one for each, Unwanted unless they are two."""
    if not isinstance(value, list) or not all(isinstance(name, str) and name.strip() for name in value):
        raise BadRow(f"expected a list of names in speakers, found {str(value)[:80]!r}")
    if len(value) != len(texts):
        raise BadRow(f"expected one speaker for each utterance, found {len(value)} for {len(texts)}")
    names = [" ".join(name.split()) for name in value]
    parties = list(dict.fromkeys(names))
    if len(parties) != 2:
        raise Unwanted("not_two_party", f"expected two speakers, found {len(parties)}: {', '.join(parties)[:120]}")
    return names


def alternating(texts: Sequence[str]) -> list[str]:
    """Speakers A and B by turns, for corpora that name none."""
    return ["AB"[index % 2] for index in range(len(texts))]


def reject(row: SourceRow, kind: str, reason: str) -> Reject:
    """The reject of a source row; `row_key` is where it stands."""
    return Reject(
        stage=STAGE_NAME,
        row_key=row.where,
        kind=kind,
        reason=reason,
        retryable=False,
        attempts=0,
        payload=_payload(row),
    )


def _payload(row: SourceRow) -> str | None:
    if row.text is not None:
        return canonical_json(row.text)
    if row.value is None:
        return None
    whole = canonical_json(row.value)
    return whole if len(whole) <= SHOWN_PAYLOAD else canonical_json(whole[:SHOWN_PAYLOAD])
