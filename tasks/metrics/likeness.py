"""Whether simulated users write as people do: what is measured of each side, and how far the two are apart. Pure.

A measure has one value a message or one a dialogue. Two sides are compared by the difference of their means, which says
in which direction they differ, and by the Wasserstein distance of their distributions, which also sees what the means
hide (in the measure's unit; of a yes or no it is the difference of the shares). Both are resampled by dialogue, each
side by itself. A distance is never below 0, also of samples of one kind: only a difference can be told from nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import polars as pl

from tasks.foundation.stats.bootstrap import Bootstrap, intervals_of
from tasks.foundation.stats.sums import quotient
from tasks.metrics.simulator_health import find_polite, tell_at_once
from tasks.metrics.words import Said, Words, mattr, split_words, vary

FEWEST_DIALOGUES = 2
DECIMALS = 2
"""Values are compared to so many decimals."""
BINS = 12
TAIL = 0.98
"""Where a histogram ends: at this quantile of both sides together, all above it in the last bin."""

_QUESTION = (
    r"(?i)[?？]|[吗呢么][。！!]?[\s\x1c-\x1f]*\z|(?:\A|[.!,][\s\x1c-\x1f]+)(?:what|how|why|when|where|who|which|can|could|do|does|is|are|should"
    r"|would)[\s\x1c-\x1f][^.!?]*\z"
)
_ENDED = r"[.!?。！？…~～)）\"”’:：;；][\s\x1c-\x1f]*\z|[\u{1f300}-\u{1faff}☀-➿]\u{fe0f}?[\s\x1c-\x1f]*\z"
_SLIP = re.compile(
    r"""(?-i:\bi\b(?:'|\s)) | (?-i:\A\s*[a-z])          # a small i, a small letter first
    | \b(?:im|ive|dont|cant|wont|didnt|doesnt|isnt|wasnt|thats|whats|youre|theyre|couldnt|wouldnt|shouldnt)\b
    | \b(?:u|ur|pls|plz|thx|idk|gonna|wanna|teh|alot|becuase|recieve|definately|seperate|untill|wierd|tommorow)\b
    | \b(\w+)\s+\1\b | ([a-z])\2{3,} | \s[,.!?](?:\s|$) | [,;][a-z]
    | [\u4e00-\u9fff][,?!;](?![0-9]) | [。，！？]{2,} | (?:在|再)次在 | 的的|了了""",
    re.VERBOSE | re.IGNORECASE,
)


def _words(line: str) -> tuple[str, ...]:
    return tuple(line.split())


FEELING = frozenset(
    _words(
        "afraid alone amazed amazing angry annoyed annoying anxious ashamed awful bored boring confused crazy cried "
        "depressed desperate disappointed disgusting embarrassed excited exhausted fear frustrated frustrating furious "
        "glad grateful guilty happy hate hated helpless hope hopeful hopeless horrible hurt jealous lonely love loved "
        "mad miserable nervous overwhelmed overwhelming panic proud relieved sad scared scary shocked sick stressed "
        "stressful surprised terrible terrified thrilled tired ugh unhappy upset wonderful worried worry wow yay"
    )
)
"""English words of feeling, matched whole."""
FEELING_ZH = _words(
    "开心 高兴 快乐 难过 伤心 生气 气死 愤怒 好烦 烦死 很烦 焦虑 紧张 害怕 担心 失望 绝望 后悔 内疚 羡慕 嫉妒 孤独 "
    "寂寞 无聊 好累 很累 疲惫 崩溃 委屈 感动 激动 兴奋 惊讶 尴尬 郁闷 讨厌 恨 喜欢 幸福 放松 安心 压力 痛苦 难受 哭"
)


@dataclass(frozen=True, slots=True)
class Measure:
    """`of`: what has one value each, a message or a user's side of a dialogue (NaN: cannot be told). `take` gives
    them of some dialogues and their words."""

    unit: Literal["words", "share"]
    of: Literal["message", "dialogue"]
    take: Callable[[Said, Words], np.ndarray]


def repeat_own_words(said: Said, words: Words) -> np.ndarray:
    """Of the three-word sequences after the first message, the share [dialogues] that the user has said before."""
    begins = np.nonzero(words.text[2:] == words.text[:-2])[0]
    text = words.text[begins]
    pairs = _number(words.codes[begins], words.codes[begins + 1])
    sequence = _number(said.dialogue[text], _number(pairs, words.codes[begins + 2]))
    _, at, places = np.unique(sequence, return_index=True, return_inverse=True)
    again = text[at][places] < text
    later = said.position[text] > 0
    counts = [np.bincount(said.dialogue[text[each]], minlength=said.dialogues) for each in (again, later)]
    return quotient(*counts)


def _number(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """One number for each two, equal where both are."""
    distinct: np.ndarray = np.unique(one << 32 | other, return_inverse=True)[1]
    return distinct


def find_feeling(texts: pl.Series, words: Words) -> np.ndarray:
    """Mask [texts] of those with a word of feeling."""
    return words.find(FEELING) | texts.str.contains_any(list(FEELING_ZH)).to_numpy()


def find_slips(texts: pl.Series) -> np.ndarray:
    """Mask [texts] of those with a slip of typing."""
    return np.array([_SLIP.search(text) is not None for text in texts], dtype=bool)


def list_measures(window: int) -> dict[str, Measure]:
    """Every measure by name; `window` in words, of lexical diversity."""

    def vocabulary(said: Said, words: Words) -> np.ndarray:
        return mattr(words.codes, said.dialogue[words.text], said.dialogues, window)

    share = partial(Measure, "share", "message")
    of_dialogue = partial(Measure, "share", "dialogue")
    return {
        "length": Measure("words", "message", lambda said, words: words.lengths),
        "question": share(lambda said, words: said.texts.str.contains(_QUESTION).to_numpy()),
        "no_end_mark": share(lambda said, words: ~said.texts.str.contains(_ENDED).to_numpy()),
        "typing_slip": share(lambda said, words: find_slips(said.texts)),
        "polite": share(lambda said, words: find_polite(said.texts, words)),
        "feeling": share(lambda said, words: find_feeling(said.texts, words)),
        "vocabulary": of_dialogue(vocabulary),
        "own_words_again": of_dialogue(repeat_own_words),
        "told_at_once": of_dialogue(tell_at_once),
        "length_variation": of_dialogue(lambda said, words: vary(words.lengths, said.dialogue, said.dialogues)),
    }


@dataclass(frozen=True, slots=True)
class Side:
    """Values of one measure, and the dialogue (code) and cluster (code) of each."""

    values: np.ndarray
    clusters: np.ndarray


@dataclass(frozen=True, slots=True)
class Compared:
    """One measure of both sides: simulated, then real. `histograms` are shares in the bins between `edges`."""

    measure: str
    unit: str
    means: tuple[float, float]
    n: tuple[int, int]
    difference: float
    difference_ends: tuple[float | None, float | None]
    distance: float
    distance_ends: tuple[float | None, float | None]
    edges: tuple[float, ...]
    histograms: tuple[tuple[float, ...], tuple[float, ...]]


def compare_users(
    simulated: Said, clusters: np.ndarray, real: Said, window: int, bootstrap: Bootstrap
) -> Iterator[Compared]:
    """Each measure of the simulated dialogues (clustered [dialogues]: several may come from one seed) and of the real
    ones; those that one side has in fewer than two dialogues are left out."""
    measures = list_measures(window)
    one, other = _measure(simulated, clusters, measures), _measure(real, np.arange(real.dialogues), measures)
    for name, measure in measures.items():
        if min(len(np.unique(side[name].clusters)) for side in (one, other)) >= FEWEST_DIALOGUES:
            yield _compare(name, measure.unit, one[name], other[name], bootstrap)


def _measure(said: Said, clusters: np.ndarray, measures: Mapping[str, Measure]) -> dict[str, Side]:
    """The values of each measure that can be told."""
    found: dict[str, list[np.ndarray]] = {name: [] for name in measures}
    for _, some in said.blocks():
        (words,) = split_words(some.texts)
        for name, measure in measures.items():
            found[name].append(np.asarray(measure.take(some, words), dtype=float))
    sides = {}
    for name, measure in measures.items():
        values = np.concatenate(found[name])
        known = np.isfinite(values)
        of = clusters if measure.of == "dialogue" else clusters[said.dialogue]
        sides[name] = Side(values[known].round(DECIMALS), of[known])
    return sides


def _compare(name: str, unit: str, one: Side, other: Side, bootstrap: Bootstrap) -> Compared:
    levels = np.unique(np.concatenate([one.values, other.values]))
    tables = [_count(side, levels) for side in (one, other)]
    whole = (tables[0].sum(axis=0, keepdims=True), tables[1].sum(axis=0, keepdims=True))
    # a seed of its own for each side: they are different dialogues, and no resample of one is one of the other
    seeds = [Bootstrap(bootstrap.resamples, bootstrap.seed + place) for place in range(2)]
    one_drawn, other_drawn = (draw.counts(len(table)) @ table for draw, table in zip(seeds, tables, strict=True))
    ends = intervals_of(
        [_subtract_means(one_drawn, other_drawn, levels), _measure_distance(one_drawn, other_drawn, levels)]
    )
    low_high = [(None, None) if each is None else (each.low, each.high) for each in ends]
    edges = _choose_edges(levels, whole, unit)
    return Compared(
        measure=name,
        unit=unit,
        means=(float(one.values.mean()), float(other.values.mean())),
        n=(len(one.values), len(other.values)),
        difference=float(_subtract_means(*whole, levels)[0]),
        difference_ends=low_high[0],
        distance=float(_measure_distance(*whole, levels)[0]),
        distance_ends=low_high[1],
        edges=tuple(map(float, edges)),
        histograms=(_count_bins(one, edges), _count_bins(other, edges)),
    )


def _count(side: Side, levels: np.ndarray) -> np.ndarray:
    """How often each level occurs in each cluster [clusters, levels]."""
    found, places = np.unique(side.clusters, return_inverse=True)
    table = np.zeros((len(found), len(levels)))
    np.add.at(table, (places, np.searchsorted(levels, side.values)), 1)
    return table


def _subtract_means(one: np.ndarray, other: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Of counts [resamples, levels], the mean of one less that of the other."""
    means = [quotient(counts @ levels, counts.sum(axis=1)) for counts in (one, other)]
    return np.asarray(means[0] - means[1])


def _measure_distance(one: np.ndarray, other: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The Wasserstein distance of counts [resamples, levels]: the area between both distribution functions. scipy has
    it for one pair of samples; tests hold the two against each other."""
    below = [quotient(np.cumsum(counts, axis=1), counts.sum(axis=1, keepdims=True)) for counts in (one, other)]
    return np.asarray(np.abs(below[0] - below[1])[:, :-1] @ np.diff(levels))


def _choose_edges(levels: np.ndarray, whole: Sequence[np.ndarray], unit: str) -> np.ndarray:
    if set(levels) <= {0.0, 1.0}:
        return np.array([-0.5, 0.5, 1.5])
    shares = np.cumsum((whole[0] / whole[0].sum() + whole[1] / whole[1].sum())[0]) / 2
    last = float(levels[np.searchsorted(shares, TAIL).clip(max=len(levels) - 1)])
    return np.linspace(0.0, max(last, 1.0 if unit == "share" else float(BINS)), BINS + 1)


def _count_bins(side: Side, edges: np.ndarray) -> tuple[float, ...]:
    counted = np.histogram(side.values.clip(max=edges[-1]), edges)[0] / len(side.values)
    return tuple(float(share) for share in counted.round(6))
