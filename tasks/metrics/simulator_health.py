"""How the user simulator behaved (design: simulator health): what a reader must know beside every score.

Rates are over the user turns that the simulator wrote: the first turn comes from the chat seed, the last,
unanswered one counts; rates of re-asks count the turn that it did not get right as well. Lexical measures see words of
Latin script and single Han characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.foundation.stats.sums import ratio
from tasks.metrics.observed import Observed, mean_over_units

_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+(?:['’][^\W_\u3400-\u9fff]+)*")
_HAN = re.compile(r"[\u3400-\u9fff]+")

POLITE = frozenset({"please", "thanks", "thank", "appreciate", "appreciated", "grateful", "sorry", "kindly", "pardon"})
"""English words of politeness, matched whole."""
POLITE_ZH = (
    "请问",
    "请你",
    "请您",
    "麻烦你",
    "麻烦您",
    "谢谢",
    "多谢",
    "感谢",
    "不好意思",
    "抱歉",
    "对不起",
    "劳驾",
    "您",
)

SHORTEST_TERM = 4
"""Letters from which an English word of the final intent says something."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The user's side of one conversation. `seeded`: the first turn, from the chat seed; `simulated`: those the
    simulator wrote, the unanswered last one included; `given_up`: it did not get the next one right. Counts of re-asks
    are over the simulated turns and that one."""

    seeded: str | None
    simulated: tuple[str, ...]
    final_intent: str | None
    label_reasks: int
    role_breaks: int
    given_up: bool = False

    @property
    def turns(self) -> tuple[str, ...]:
        return self.simulated if self.seeded is None else (self.seeded, *self.simulated)


def tokens(text: str) -> list[str]:
    """Lower-case words, and each Han character by itself; punctuation is nothing.

    >>> tokens("I don't know, 谢谢!")
    ['i', "don't", 'know', '谢', '谢']
    """
    return _TOKEN.findall(text.casefold())


def empty_turns(heard: Heard) -> int:
    return sum(not text.strip() for text in heard.simulated)


def repeated_turns(heard: Heard) -> int:
    """Simulated turns that say again, but for case, spaces and punctuation, what the user said before."""
    spoken = [tuple(tokens(text)) for text in heard.turns]
    first = len(spoken) - len(heard.simulated)
    return sum(bool(words) and words in spoken[:place] for place, words in enumerate(spoken) if place >= first)


def polite_turns(heard: Heard) -> int:
    """Simulated turns with a word of politeness."""
    return sum(is_polite(text) for text in heard.simulated)


def is_polite(text: str) -> bool:
    return not POLITE.isdisjoint(tokens(text)) or any(word in text for word in POLITE_ZH)


def front_loading(heard: Heard) -> float:
    """Of the final intent's terms that the user ever says, the share said in the first turn, 0–1.

    NaN for fewer than two turns, and when none is ever said. 1: everything is on the table at once.
    """
    wanted = terms(heard.final_intent or "")
    said = [terms(text) & wanted for text in heard.turns]
    ever = set().union(*said)
    return len(said[0]) / len(ever) if len(said) >= 2 and ever else np.nan


def terms(text: str) -> set[str]:
    """What a text is about: its words of four letters or more that are no stop words, and its pairs of Han
    characters that stand together."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    words = {word for word in tokens(text) if len(word) >= SHORTEST_TERM and word not in ENGLISH_STOP_WORDS}
    pairs = {run[at : at + 2] for run in _HAN.findall(text) for at in range(len(run) - 1)}
    return words | pairs


def verbosity_variation(heard: Heard) -> float:
    """Coefficient of variation of the simulated turns' lengths in tokens (population deviation / mean).

    0 for all-equal lengths; NaN for fewer than two turns and for turns without a token.
    """
    lengths = np.array([len(tokens(text)) for text in heard.simulated], dtype=float)
    return float(lengths.std() / lengths.mean()) if len(lengths) >= 2 and lengths.any() else np.nan


def mattr(words: Sequence[str], window: int) -> float:
    """Moving-average type-token ratio: mean over all windows of `window` words of distinct / window.

    A shorter text is one window. NaN for no word; 1 for one word; 1/window for all-equal words.
    """
    if not words:
        return np.nan
    width = min(window, len(words))
    counts: dict[str, int] = {}
    total = 0
    for place, word in enumerate(words):
        counts[word] = counts.get(word, 0) + 1
        if place >= width:
            old = words[place - width]
            counts[old] -= 1
            if not counts[old]:
                del counts[old]
        if place >= width - 1:
            total += len(counts)
    return total / width / (len(words) - width + 1)


def compute_health_metrics(
    heard: Sequence[Heard],
    *,
    stopped_early: np.ndarray,
    simulator_fault: np.ndarray,
    void: np.ndarray,
    missing: np.ndarray,
    window: int,
) -> list[Observed]:
    """All health metrics over conversations [conversations], void ones included where turns are counted.

    `stopped_early`: the stop rule ended it; `simulator_fault`: the simulator failed; `missing`: there is no
    conversation (those are void too). Numbers of turns do not count faults: a turn that is there was said.
    """
    turns = np.array([len(one.simulated) for one in heard], dtype=float)
    asked_for = turns + np.array([one.given_up for one in heard], dtype=float)
    nothing = np.zeros(len(heard))
    rates = {
        "simulator_label_reask_rate": ([one.label_reasks for one in heard], asked_for),
        "simulator_role_break_rate": ([one.role_breaks for one in heard], asked_for),
        "simulator_empty_share": ([empty_turns(one) for one in heard], turns),
        "simulator_repeated_share": ([repeated_turns(one) for one in heard], turns),
        "simulator_polite_share": ([polite_turns(one) for one in heard], turns),
    }
    found = [
        Observed(metric, np.stack([np.array(counts, dtype=float), n], axis=1), ratio(), n, nothing, nothing)
        for metric, (counts, n) in rates.items()
    ]
    by_conversation = {
        "simulator_front_loading": [front_loading(one) for one in heard],
        "simulator_verbosity_variation": [verbosity_variation(one) for one in heard],
        "simulator_mattr": [mattr([word for text in one.simulated for word in tokens(text)], window) for one in heard],
    }
    found.append(mean_over_units("simulator_early_stop_share", stopped_early.astype(float), void=void))
    found.append(mean_over_units("simulator_fault_share", simulator_fault.astype(float), void=missing))
    found += [
        mean_over_units(metric, np.array(values, dtype=float), void=void) for metric, values in by_conversation.items()
    ]
    return found
