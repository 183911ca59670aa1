"""Dialogues of two parties as each corpus has them, or why a row is none; their spacing mended."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.foundation.ids import content_id
from tasks.foundation.settings.sections import SceneSource
from tasks.foundation.sources import BadRow, SourceRow, Unwanted, open_source
from tasks.foundation.sources.values import WHY, one_line
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.languages import HAN, language_of
from tasks.scenes.shapes import OWN, find_said, part_of, read_shaped, shape_of

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


Parse = Callable[[SourceRow], SourceDialogue]


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


def parse_utterances(value: Any, column: str) -> list[str]:
    """A list of utterances, each on one line and none empty; BadRow for anything else."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BadRow(f"expected a list of utterances in {column}, found {str(value)[:80]!r}")
    texts = [one_line(text) for text in value]
    if not all(texts):
        raise BadRow(f"expected text in every utterance, found number {texts.index('') + 1} of {len(texts)} empty")
    return texts


def parse_speakers(value: Any, texts: Sequence[str]) -> list[str]:
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


def alternate_speakers(texts: Sequence[str]) -> list[str]:
    """Speakers A and B by turns, for corpora that name none."""
    return ["AB"[index % 2] for index in range(len(texts))]


SODA_REQUIRED = ("dialogue", "speakers")
SODA_COLUMNS = (*SODA_REQUIRED, "narrative", "split")


def open_soda(source: SceneSource) -> Iterator[SourceRow]:
    """SODA: English dialogues with named speakers and a one-paragraph story.

    {"dialogue": ["Hi, Father. I'm Veda.", …], "speakers": ["Veda", "Priest", …], "narrative": "Veda thought …",
     "split": "train", …}
    """
    return open_source(source, required=SODA_REQUIRED, columns=SODA_COLUMNS)


def parse_soda(row: SourceRow) -> SourceDialogue:
    """The dialogue of a row; BadRow or Unwanted for one that cannot be used."""
    texts = parse_utterances(row.value["dialogue"], "dialogue")
    return SourceDialogue(parse_speakers(row.value["speakers"], texts), texts, _narrative(row.value), _split(row.value))


def _narrative(row: Mapping[str, Any]) -> str | None:
    narrative = row.get("narrative")
    return one_line(narrative) or None if isinstance(narrative, str) else None


def _split(row: Mapping[str, Any]) -> str | None:
    split = row.get("split")
    return split if isinstance(split, str) and split else None


def open_lccc(source: SceneSource) -> Iterator[SourceRow]:
    """LCCC: Chinese dialogues, segmented with spaces, of two people who take turns and have no names. A line is a bare
    array, ["你好 ， 我 想 退 这 双 鞋", "小票 带 了 吗"], or {"dialog": [...]}.

    Rows of a local file, or of the corpus file of a hub dataset (its lines are arrays, which the hub library does not
    stream): `split` names it, "train" standing for lccc_base_train.jsonl.gz.
    """
    split = source.split or "train"
    return open_source(source, hub_file=split if "." in split else f"lccc_base_{split}.jsonl.gz")


def parse_lccc(row: SourceRow) -> SourceDialogue:
    """The dialogue of a row, re-joined; BadRow for a row that is none."""
    value, split = row.value, None
    if isinstance(value, dict):
        split = _split(value)
        value = next((value[key] for key in ("dialog", "dialogue") if key in value), None)
        if value is None:
            raise BadRow(f"expected an array or an object with 'dialog', found the keys {', '.join(row.value)}")
    texts = [rejoin(text) for text in parse_utterances(value, "dialog")]
    return SourceDialogue(alternate_speakers(texts), texts, split=split)


def open_mapped(source: SceneSource) -> tuple[Iterator[SourceRow], Parse]:
    """Any other corpus, of the shape that its settings name or else its first rows show.

    {"dialogue": ["Good morning , sir .", "There is one ."], "speakers": ["A", "B"]}
    """
    shape = shape_of(source)
    return read_shaped(source, shape), lambda row: parse_dialogue(row, shape)


def parse_dialogue(row: SourceRow, shape: Mapping[str, str] = OWN) -> SourceDialogue:
    """The dialogue of a row, its spacing mended; without speakers two take turns."""
    said = find_said(row.value, shape)
    texts = parse_utterances(said.texts, said.path)
    mend = rejoin if language_of(" ".join(texts)) == "zh" else tidy
    return SourceDialogue(
        speakers=parse_speakers(said.speakers, texts) if said.speakers is not None else alternate_speakers(texts),
        texts=[mend(text) for text in texts],
        narrative=_narrative({"narrative": part_of(row.value, shape, "narrative")}),
        split=_split({"split": part_of(row.value, shape, "split")}),
        language=part_of(row.value, shape, "language"),
    )


# Segmented Chinese text (LCCC) is put together again, spaced English punctuation (DailyDialog) closed up.

_CJK = re.compile(f"[{HAN}\u3000-\u303f\uff00-\uffef\u2018-\u201f\u2026\u2014\u00b7\uff5e]")
"""Han characters, Chinese and full-width punctuation."""
_ALPHANUMERIC = re.compile(r"[A-Za-z0-9À-ɏ]")
_CLOSING = frozenset(",.!?;:%)]}~")
_OPENING = frozenset("([{#@")


def rejoin(text: str) -> str:
    """Chinese text without the spaces of its segmentation.

    No space is left beside a Chinese character or punctuation mark; spaces between Latin words stay. Letters
    and digits that stand singly side by side (a corpus cut into characters: "h a p p y", "2 0 元") are joined,
    so "S E E D" becomes "SEED"; where two English words were cut into letters, the space between them is lost.
    Idempotent.

    >>> rejoin("我 用 S E E D ， good morning")
    '我用SEED，good morning'
    """
    tokens = text.split()
    if not tokens:
        return ""
    gaps = ["" if _belong_together(left, right) else " " for left, right in itertools.pairwise(tokens)]
    return tokens[0] + "".join(gap + token for gap, token in zip(gaps, tokens[1:], strict=True))


def _belong_together(left: str, right: str) -> bool:
    a, b = left[-1], right[0]
    if _CJK.match(a) or _CJK.match(b):
        return True
    if _ends_singly(left) and _starts_singly(right):
        return True
    if _ALPHANUMERIC.match(a) and b in _CLOSING:
        return True
    if a in _OPENING and _ALPHANUMERIC.match(b):
        return True
    return not _ALPHANUMERIC.match(a) and a == b


def _ends_singly(token: str) -> bool:
    """Whether the token's last character is a letter or digit with no other before it."""
    return bool(_ALPHANUMERIC.match(token[-1])) and not (len(token) > 1 and _ALPHANUMERIC.match(token[-2]))


def _starts_singly(token: str) -> bool:
    return bool(_ALPHANUMERIC.match(token[0])) and not (len(token) > 1 and _ALPHANUMERIC.match(token[1]))


_SPACED_MARK = re.compile(r"(?<=\S)\s+(?=[,.!?;:%)\]]+(?:\s|$|[\"'’”)]))")
_SPACED_CONTRACTION = re.compile(r"(?<=\w)\s*(['’])\s*(?=(?:s|m|re|ve|ll|d|t)\b(?!['’]))", re.IGNORECASE)
_SPLIT_NOT = re.compile(r"(?<=\w)\s+(?=n['’]t\b)")
_SPACED_PLURAL = re.compile(r"(?<=s) (['’])(?= \w)")
_RUN_ON = re.compile(r"(?<=[a-z]{2})([.!?])(?=[A-Z][a-z]*(?:['’ ,.!?]|$))")


def tidy(text: str) -> str:
    """English text with its punctuation where it belongs.

    Closes the space before a mark and inside a contraction, opens one where a sentence runs on. Idempotent;
    text that was written properly is left as it is but for runs of spaces.

    >>> tidy("Well , that's too far.Can you change some money ?")
    "Well, that's too far. Can you change some money?"
    >>> tidy("I ’ m sure it do n't matter , it's ten minutes ' walk .")
    "I’m sure it don't matter, it's ten minutes' walk."
    """
    text = " ".join(text.split())
    text = _SPACED_MARK.sub("", text)
    text = _SPACED_PLURAL.sub(r"\1", text)
    text = _SPLIT_NOT.sub("", text)
    text = _SPACED_CONTRACTION.sub(r"\1", text)
    return _RUN_ON.sub(r"\1 ", text)


READERS: dict[str, Callable[[SceneSource], tuple[Iterator[SourceRow], Parse]]] = {
    "soda": lambda source: (open_soda(source), parse_soda),
    "lccc": lambda source: (open_lccc(source), parse_lccc),
    "jsonl": open_mapped,
    "mapped": open_mapped,
}
"""For each kind of corpus: its rows, and how one is understood."""
