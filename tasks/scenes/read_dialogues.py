"""Any other corpus: objects with `dialogue` and, where there are any, `speakers`.

{"dialogue": ["Good morning , sir .", "There is one ."], "speakers": ["A", "B"]}
"""

from __future__ import annotations

from collections.abc import Iterator

from tasks.foundation.settings.sections import SceneSource
from tasks.foundation.sources import SourceRow, open_source
from tasks.foundation.sources.texts import one_line, unless_blank
from tasks.foundation.texts.languages import language_of
from tasks.scenes.reading import SourceDialogue, alternating, speakers_of, texts_of
from tasks.scenes.rejoin import rejoin, tidy


def dialogue_rows(source: SceneSource) -> Iterator[SourceRow]:
    return open_source(source, required=["dialogue"])


def parse_dialogue(row: SourceRow) -> SourceDialogue:
    """The dialogue of a row, its spacing mended; without speakers two take turns."""
    texts = texts_of(row.value["dialogue"], "dialogue")
    speakers = unless_blank(row.value.get("speakers"))
    mend = rejoin if language_of(" ".join(texts)) == "zh" else tidy
    split = row.value.get("split")
    narrative = row.value.get("narrative")
    return SourceDialogue(
        speakers=speakers_of(speakers, texts) if speakers is not None else alternating(texts),
        texts=[mend(text) for text in texts],
        narrative=one_line(narrative) or None if isinstance(narrative, str) else None,
        split=split if isinstance(split, str) and split else None,
        language=row.value.get("language"),
    )
