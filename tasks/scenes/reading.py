"""What a reader of dialogues hands over: a two-party dialogue, or why a row is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tasks.foundation.ids import content_id
from tasks.foundation.settings.sections import SceneSource
from tasks.foundation.sources import BadRow, Unwanted
from tasks.foundation.sources.language import WHY
from tasks.foundation.sources.texts import one_line
from tasks.foundation.tables.types import Language

STAGE_NAME = "scenes"
NO_SPLIT = "all"
BY_SHAPE = ("not_two_party", "too_short", "too_long", WHY)
"""Why a dialogue is left out, beside the rules of configs/dialogue_filters.yaml."""


@dataclass(frozen=True, slots=True)
class SourceDialogue:
    """One dialogue as its reader understood it; `language` as the row names it."""

    speakers: Sequence[str]
    texts: Sequence[str]
    narrative: str | None = None
    split: str | None = None
    language: Any = None


def seed_row(dialogue: SourceDialogue, language: Language, source: SceneSource, index: int) -> dict[str, Any]:
    """The row of `seed_dialogues` of a dialogue; its id is a hash over corpus and turns."""
    turns = list(zip(dialogue.speakers, dialogue.texts, strict=True))
    return {
        "seed_id": content_id("seed", source.corpus, turns),
        "corpus": source.corpus,
        "split": dialogue.split or source.split or NO_SPLIT,
        "source_index": index,
        "language": language,
        "turns": [{"speaker": speaker, "text": text} for speaker, text in turns],
        "turn_count": len(turns),
        "narrative": dialogue.narrative,
        "licence": source.licence,
    }


def texts_of(value: Any, column: str) -> list[str]:
    """A list of utterances, each on one line and none empty; BadRow for anything else."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BadRow(f"expected a list of utterances in {column}, found {str(value)[:80]!r}")
    texts = [one_line(text) for text in value]
    if not all(texts):
        raise BadRow(f"expected text in every utterance, found number {texts.index('') + 1} of {len(texts)} empty")
    return texts


def speakers_of(value: Any, texts: Sequence[str]) -> list[str]:
    """The speaker of each utterance; BadRow when there is not one for each, Unwanted unless they are two."""
    names = [one_line(name) for name in value if isinstance(name, str)] if isinstance(value, list) else []
    if not isinstance(value, list) or len(names) < len(value) or not all(names):
        raise BadRow(f"expected a list of names in speakers, found {str(value)[:80]!r}")
    if len(names) != len(texts):
        raise BadRow(f"expected one speaker for each utterance, found {len(names)} for {len(texts)}")
    parties = list(dict.fromkeys(names))
    if len(parties) != 2:
        raise Unwanted("not_two_party", f"expected two speakers, found {len(parties)}: {', '.join(parties)[:120]}")
    return names


def alternating(texts: Sequence[str]) -> list[str]:
    """Speakers A and B by turns, for corpora that name none."""
    return ["AB"[index % 2] for index in range(len(texts))]
