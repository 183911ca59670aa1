"""Texts as numbers: what users wrote, dialogue by dialogue, and the words of many texts at once. Pure.

Words are lower-case runs of letters and digits, and each Han character by itself; punctuation is nothing. They are
split natively and numbered, so that what is counted over them is counted over arrays: a text is read once, whatever is
measured of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

_HAN = r"[\u{3400}-\u{9fff}]"
_LETTER = r"[\p{L}\p{N}--[\u{3400}-\u{9fff}]]"
_WORD = rf"{_HAN}|{_LETTER}+(?:['’]{_LETTER}+)*"
_FOLDED_OTHERWISE = r"[[\p{L}\p{M}]--[a-zA-Z\u{3400}-\u{9fff}]]"
"""Letters of which some fold to others than their lower-case ones (ß, ς): Python folds texts that have any."""
_BLOCK = 65_536
"""Messages at once."""


@dataclass(frozen=True, eq=False)
class Said:
    """What users wrote: `texts` [messages], and the `dialogue` [messages] of each, ascending below `dialogues`; a
    dialogue may have none."""

    texts: pl.Series
    dialogue: np.ndarray
    dialogues: int

    @staticmethod
    def of(dialogues: Iterable[Sequence[str]]) -> Said:
        """From each dialogue's messages."""
        several = list(dialogues)
        texts = pl.Series([text for messages in several for text in messages], dtype=pl.String)
        return Said(texts, np.repeat(np.arange(len(several)), [len(each) for each in several]), len(several))

    @cached_property
    def starts(self) -> np.ndarray:
        """The place of each dialogue's first message, and the number of all: [dialogues + 1]."""
        return np.searchsorted(self.dialogue, np.arange(self.dialogues + 1))

    @cached_property
    def position(self) -> np.ndarray:
        """0-based place [messages] of a message in its dialogue."""
        return np.arange(len(self.texts)) - self.starts[self.dialogue]

    def only(self, dialogues: np.ndarray) -> Said:
        """Only some dialogues, given by their places, ascending; numbered anew."""
        number = np.full(self.dialogues, -1)
        number[dialogues] = np.arange(len(dialogues))
        kept = number[self.dialogue] >= 0
        return Said(self.texts.filter(pl.Series(kept)), number[self.dialogue[kept]], len(dialogues))

    def blocks(self) -> Iterator[tuple[slice, Said]]:
        """Whole dialogues with some ten thousand messages at once, and which they are: at least one block."""
        first = 0
        while True:
            reached = np.searchsorted(self.starts, self.starts[first] + _BLOCK, side="right") - 1
            last = min(self.dialogues, max(first + 1, int(reached)))
            messages = slice(int(self.starts[first]), int(self.starts[last]))
            yield slice(first, last), Said(self.texts[messages], self.dialogue[messages] - first, last - first)
            if last == self.dialogues:
                return
            first = last


@dataclass(frozen=True, eq=False)
class Words:
    """The words of texts in order: `codes` [words] into `vocabulary`, and the text [words] that each is of. `spelt`
    [texts] are the texts' words with spaces between them."""

    codes: np.ndarray
    text: np.ndarray
    lengths: np.ndarray
    vocabulary: pl.Series
    spelt: pl.Series

    def find(self, words: Iterable[str]) -> np.ndarray:
        """Mask [texts] of those that have one of some words."""
        chosen = self.vocabulary.is_in(list(words)).to_numpy()
        return np.bincount(self.text[chosen[self.codes]], minlength=len(self.lengths)) > 0


def split_words(texts: pl.Series, *further: pl.Series) -> list[Words]:
    """The words of each series of texts (null: none), all of one vocabulary."""
    lists = [fold(each).str.extract_all(_WORD) for each in (texts, *further)]
    flat = [each.explode().drop_nulls() for each in lists]
    vocabulary = pl.concat(flat).unique()
    numbered = pl.Enum(vocabulary)
    found = []
    for each, words in zip(lists, flat, strict=True):
        lengths = each.list.len().fill_null(0).to_numpy().astype(np.int64)
        codes = words.cast(numbered).to_physical().to_numpy().astype(np.int64)
        text = np.repeat(np.arange(len(lengths)), lengths)
        found.append(Words(codes, text, lengths, vocabulary, each.list.join(" ")))
    return found


def fold(texts: pl.Series) -> pl.Series:
    """The texts as `str.casefold` has them."""
    odd = texts.str.contains(_FOLDED_OTHERWISE).fill_null(value=False)
    lower = texts.str.to_lowercase()
    if not odd.any():
        return lower
    folded = pl.Series([text.casefold() for text in texts.filter(odd)], dtype=pl.String)
    return lower.scatter(odd.arg_true(), folded)


def pair_han(texts: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Every two Han characters that stand together, as one number below 2³², and the text that each pair is of."""
    runs = texts.str.extract_all(rf"{_HAN}+")
    counts = runs.list.len().fill_null(0).to_numpy()
    flat = runs.explode().drop_nulls()
    text = np.repeat(np.repeat(np.arange(len(texts)), counts), (flat.str.len_chars() + 1).to_numpy())
    signs = np.frombuffer("".join(f"{run}\n" for run in flat).encode("utf-32-le"), dtype=np.uint32).astype(np.int64)
    together = np.nonzero((signs[:-1] != ord("\n")) & (signs[1:] != ord("\n")))[0] if len(signs) else np.empty(0, int)
    return signs[together] << 16 | signs[together + 1], text[together]


def find_previous(keys: np.ndarray) -> np.ndarray:
    """Of each of `keys` [n], the place of the same key before it; -1 for none."""
    order = np.argsort(keys, kind="stable")
    again = keys[order[1:]] == keys[order[:-1]]
    found = np.full(len(keys), -1)
    found[order[1:][again]] = order[:-1][again]
    return found


def mattr(codes: np.ndarray, sequence: np.ndarray, sequences: int, window: int) -> np.ndarray:
    """Moving-average type-token ratio [sequences]: mean over all windows of `window` words of distinct / window.
    `codes` [words] in order, the `sequence` [words] of each ascending.

    A shorter text is one window. NaN for no word; 1 for one word; 1/window for all-equal words.
    """
    lengths = np.bincount(sequence, minlength=sequences)
    starts = np.concatenate([[0], np.cumsum(lengths)])[sequence]
    previous = find_previous(sequence * (int(codes.max(initial=0)) + 1) + codes)
    place = np.arange(len(codes)) - starts
    before = np.where(previous < 0, -1, previous - starts)
    width = np.minimum(lengths, window)
    # a word is the first of its kind in the windows that begin after the one before it, and hold it
    first = np.maximum(before, np.maximum(place - width[sequence], -1))
    last = np.minimum(place, (lengths - width)[sequence])
    total = np.bincount(sequence, weights=np.maximum(last - first, 0), minlength=sequences)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / width / (lengths - width + 1))


def vary(lengths: np.ndarray, dialogue: np.ndarray, dialogues: int) -> np.ndarray:
    """Coefficient of variation [dialogues] of the messages' lengths in words [messages] (population deviation / mean).

    0 for all-equal lengths; NaN for fewer than two messages and for messages without a word.
    """
    counts = np.bincount(dialogue, minlength=dialogues)
    starts = np.concatenate([[0], np.cumsum(counts)])
    found = np.full(dialogues, np.nan)
    for n in np.unique(counts[counts > 1]):
        chosen = np.nonzero(counts == n)[0]
        table = lengths[starts[chosen][:, None] + np.arange(n)].astype(float)
        mean = table.mean(axis=1)
        found[chosen] = np.divide(table.std(axis=1), mean, out=np.full(len(table), np.nan), where=mean > 0)
    return found
