"""LCCC: Chinese dialogues, segmented with spaces, of two people who take turns and have no names.

A line is a bare array, ["你好 ， 我 想 退 这 双 鞋", "小票 带 了 吗"], or {"dialog": [...]}.
"""

from __future__ import annotations

from collections.abc import Iterator

from tasks.foundation.settings.sections import SceneSource
from tasks.foundation.sources import BadRow, SourceRow, open_source
from tasks.scenes.reading import SourceDialogue, alternating, texts_of
from tasks.scenes.rejoin import rejoin

KEYS = ("dialog", "dialogue")


def lccc_rows(source: SceneSource) -> Iterator[SourceRow]:
    """Rows of a local file, or of the corpus file of a hub dataset (its lines are arrays, which the hub library
    does not stream): `split` names it, "train" standing for lccc_base_train.jsonl.gz."""
    return open_source(source, hub_file=_hub_file(source))


def parse_lccc(row: SourceRow) -> SourceDialogue:
    """The dialogue of a row, re-joined; BadRow for a row that is none."""
    value = row.value
    split = None
    if isinstance(value, dict):
        split = value.get("split")
        value = next((value[key] for key in KEYS if key in value), None)
        if value is None:
            raise BadRow(f"expected an array or an object with 'dialog', found the keys {', '.join(row.value)}")
    texts = [rejoin(text) for text in texts_of(value, "dialog")]
    return SourceDialogue(alternating(texts), texts, split=split if isinstance(split, str) else None)


def _hub_file(source: SceneSource) -> str:
    split = source.split or "train"
    return split if "." in split else f"lccc_base_{split}.jsonl.gz"
