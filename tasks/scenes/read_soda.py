"""SODA: English dialogues with named speakers and a one-paragraph story.

{"dialogue": ["Hi, Father. I'm Veda.", …], "speakers": ["Veda", "Priest", …], "narrative": "Veda thought …", "split": "train", …}
"""  # noqa: E501 - a real record

from __future__ import annotations

from collections.abc import Iterator

from tasks.foundation.settings.sections import SceneSource
from tasks.foundation.sources import SourceRow, open_source
from tasks.foundation.sources.texts import one_line
from tasks.scenes.reading import SourceDialogue, speakers_of, texts_of

REQUIRED = ("dialogue", "speakers")
COLUMNS = (*REQUIRED, "narrative", "split")


def soda_rows(source: SceneSource) -> Iterator[SourceRow]:
    return open_source(source, required=REQUIRED, columns=COLUMNS)


def parse_soda(row: SourceRow) -> SourceDialogue:
    """The dialogue of a row; BadRow or Unwanted for one that cannot be used."""
    texts = texts_of(row.value["dialogue"], "dialogue")
    narrative = row.value.get("narrative")
    split = row.value.get("split")
    return SourceDialogue(
        speakers=speakers_of(row.value["speakers"], texts),
        texts=texts,
        narrative=one_line(narrative) or None if isinstance(narrative, str) else None,
        split=split if isinstance(split, str) and split else None,
    )
