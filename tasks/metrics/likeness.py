"""Whether simulated users write as people do: what is measured of each side, and how far the two are apart. Pure.

A measure has one value a message or one a dialogue. Two sides are compared by the difference of their means, which says
in which direction they differ, and by the Wasserstein distance of their distributions, which also sees what the means
hide (in the measure's unit; of a yes or no it is the difference of the shares). Both are resampled by dialogue, each
side by itself. A distance is never below 0, also of samples of one kind: only a difference can be told from nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.foundation.stats.bootstrap import Bootstrap, intervals_of
from tasks.foundation.stats.sums import quotient
from tasks.metrics.simulator_health import is_polite, mattr, terms, tokens

Messages = Sequence[str]
"""What one user wrote in one dialogue, in order."""

FEWEST_DIALOGUES = 2
DECIMALS = 2
"""Values are compared to so many decimals."""
BINS = 12
TAIL = 0.98
"""Where a histogram ends: at this quantile of both sides together, all above it in the last bin."""

_QUESTION = re.compile(
    r"[?？]|[吗呢么][。！!]?\s*\Z|(?:\A|[.!,]\s+)(?:what|how|why|when|where|who|which|can|could|do|does|is|are|should|would)"
    r"\s[^.!?]*\Z",
    re.IGNORECASE,
)
_ENDED = re.compile(r"[.!?。！？…~～)）\"”’:：;；]\s*$|[\U0001f300-\U0001faff☀-➿]\ufe0f?\s*$")
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
    """`of`: of each message, or of all of a user's in a dialogue (NaN: cannot be told)."""

    unit: Literal["words", "share"]
    of: Literal["message", "dialogue"]
    take: Callable[..., float]


def repeats_own_words(messages: Messages) -> float:
    """Of the three-word sequences after the first message, the share that the user has said before."""
    said: set[tuple[str, ...]] = set()
    again = later = 0
    for place, message in enumerate(messages):
        words = tokens(message)
        found = list(zip(words, words[1:], words[2:], strict=False))
        if place:
            later += len(found)
            again += sum(each in said for each in found)
        said.update(found)
    return again / later if later else np.nan


def tells_at_once(messages: Messages) -> float:
    """Of what the user ever talks about, the share that is in the first message."""
    every = [terms(message) for message in messages]
    ever = set().union(*every)
    return len(every[0]) / len(ever) if len(messages) > 1 and ever else np.nan


def varies_in_length(messages: Messages) -> float:
    """Coefficient of variation of the messages' lengths in words."""
    lengths = np.array([len(tokens(message)) for message in messages], dtype=float)
    return float(lengths.std() / lengths.mean()) if len(lengths) > 1 and lengths.any() else np.nan


def has_feeling(message: str) -> float:
    return float(not FEELING.isdisjoint(tokens(message)) or any(word in message for word in FEELING_ZH))


def list_measures(window: int) -> dict[str, Measure]:
    """Every measure by name; `window` in words, of lexical diversity."""
    return {
        "length": Measure("words", "message", lambda text: float(len(tokens(text)))),
        "question": Measure("share", "message", lambda text: float(bool(_QUESTION.search(text)))),
        "no_end_mark": Measure("share", "message", lambda text: float(not _ENDED.search(text))),
        "typing_slip": Measure("share", "message", lambda text: float(bool(_SLIP.search(text)))),
        "polite": Measure("share", "message", lambda text: float(is_polite(text))),
        "feeling": Measure("share", "message", has_feeling),
        "vocabulary": Measure("share", "dialogue", lambda said: mattr(tokens(" ".join(said)), window)),
        "own_words_again": Measure("share", "dialogue", repeats_own_words),
        "told_at_once": Measure("share", "dialogue", tells_at_once),
        "length_variation": Measure("share", "dialogue", varies_in_length),
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
    simulated: Sequence[Messages], clusters: Sequence[int], real: Sequence[Messages], window: int, bootstrap: Bootstrap
) -> Iterator[Compared]:
    """Each measure of the simulated dialogues (clustered: several may come from one seed) and of the real ones; those
    that one side has in fewer than two dialogues are left out."""
    for name, measure in list_measures(window).items():
        one, other = _collect(measure, simulated, clusters), _collect(measure, real, range(len(real)))
        if min(len(set(side.clusters)) for side in (one, other)) >= FEWEST_DIALOGUES:
            yield _compare(name, measure.unit, one, other, bootstrap)


def _collect(measure: Measure, dialogues: Sequence[Messages], clusters: Sequence[int]) -> Side:
    values: list[float] = []
    of: list[int] = []
    for messages, cluster in zip(dialogues, clusters, strict=True):
        found = [measure.take(messages)] if measure.of == "dialogue" else [measure.take(one) for one in messages]
        known = [value for value in found if np.isfinite(value)]
        values += known
        of += [cluster] * len(known)
    return Side(np.array(values, dtype=float).round(DECIMALS), np.array(of, dtype=int))


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
