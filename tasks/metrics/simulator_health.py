"""How the user simulator behaved (design: simulator health): what a reader must know beside every score.

Rates are over the user turns that the simulator wrote: the first turn comes from the chat seed, the last,
unanswered one counts; rates of re-asks count the turn that it did not get right as well. Lexical measures see words of
Latin script and single Han characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from tasks.foundation.stats.sums import quotient, ratio
from tasks.metrics.observed import Observed, mean_over_units
from tasks.metrics.words import Said, Words, mattr, pair_han, split_words, vary

POLITE = frozenset({"please", "thanks", "thank", "appreciate", "appreciated", "grateful", "sorry", "kindly", "pardon"})
"""English words of politeness, matched whole."""
POLITE_ZH = [
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
]

SHORTEST_TERM = 4
"""Letters from which an English word of the final intent says something."""
_SEEN = "[^\\s\\x1c-\\x1f]"
_PAIR = 1 << 32
"""Above every pair of Han characters."""


@dataclass(frozen=True, eq=False)
class Heard:
    """The user's side of conversations. `said`: all turns of each, the unanswered last one included; `seeded`
    [messages]: from the chat seed (only first turns), not by the simulator; `final_intents` [conversations], null where
    there is none; `given_up` [conversations]: the simulator did not get the next one right. Counts of re-asks
    [conversations] are over the simulated turns and that one."""

    said: Said
    seeded: np.ndarray
    final_intents: pl.Series
    label_reasks: np.ndarray
    role_breaks: np.ndarray
    given_up: np.ndarray

    @cached_property
    def simulated(self) -> np.ndarray:
        """Turns [conversations] that the simulator wrote."""
        return np.bincount(self.said.dialogue[~self.seeded], minlength=self.said.dialogues)


def find_empty(texts: pl.Series) -> np.ndarray:
    """Mask [texts] of those with nothing but spaces."""
    return ~texts.str.contains(_SEEN).to_numpy()


def find_repeated(said: Said, words: Words) -> np.ndarray:
    """Mask [messages] of those that say again, but for case, spaces and punctuation, what the user said before."""
    turns = pl.DataFrame({"dialogue": said.dialogue, "spelt": words.spelt})
    return ~turns.to_struct().is_first_distinct().to_numpy() & (words.lengths > 0)


def find_polite(texts: pl.Series, words: Words) -> np.ndarray:
    """Mask [texts] of those with a word of politeness."""
    return words.find(POLITE) | texts.str.contains_any(POLITE_ZH).to_numpy()


def list_terms(texts: pl.Series, words: Words) -> tuple[np.ndarray, np.ndarray]:
    """What texts are about, as numbers, and the text that each is of: their words of four letters or more that are no
    stop words, and their pairs of Han characters that stand together. Of several texts, one after the other."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    told = (words.vocabulary.str.len_chars() >= SHORTEST_TERM) & ~words.vocabulary.is_in(list(ENGLISH_STOP_WORDS))
    chosen = told.to_numpy()[words.codes]
    pairs, of = pair_han(texts)
    return np.concatenate([_PAIR + words.codes[chosen], pairs]), np.concatenate([words.text[chosen], of])


def tell_at_once(said: Said, words: Words, wanted: tuple[pl.Series, Words] | None = None) -> np.ndarray:
    """Of the terms that the user ever says, the share [dialogues] said in the first message, 0–1; with `wanted`
    [dialogues], only of the terms of that text.

    NaN for fewer than two messages, and when none is ever said. 1: everything is on the table at once.
    """
    terms, text = list_terms(said.texts, words)
    term = said.dialogue[text] << 34 | terms
    if wanted is not None:
        of_wanted, dialogue = list_terms(*wanted)
        known = np.isin(term, dialogue << 34 | of_wanted)
        term, text = term[known], text[known]
    in_first = said.position[text] == 0
    ever, at_once = (np.unique(each) >> 34 for each in (term, term[in_first]))
    counts = [np.bincount(each, minlength=said.dialogues) for each in (at_once, ever)]
    return np.where(np.diff(said.starts) > 1, quotient(*counts), np.nan)


def measure_conversations(heard: Heard, window: int) -> dict[str, np.ndarray]:
    """What each conversation [conversations] has of every measure of its texts: numbers of turns, or one value."""
    starts, found = heard.said.starts, list[dict[str, np.ndarray]]()
    for some, said in heard.said.blocks():
        simulated = ~heard.seeded[starts[some.start] : starts[some.stop]]
        found.append(dict(_measure_block(said, simulated, heard.final_intents[some], window)))
    return {name: np.concatenate([each[name] for each in found]) for name in found[0]}


def _measure_block(
    said: Said, simulated: np.ndarray, final_intents: pl.Series, window: int
) -> Iterator[tuple[str, np.ndarray]]:
    words, of_finals = split_words(said.texts, final_intents)
    turns = {
        "simulator_empty_share": find_empty(said.texts),
        "simulator_repeated_share": find_repeated(said, words),
        "simulator_polite_share": find_polite(said.texts, words),
    }
    for metric, mask in turns.items():
        yield metric, np.bincount(said.dialogue[mask & simulated], minlength=said.dialogues)
    theirs, n = simulated[words.text], said.dialogues
    yield "simulator_front_loading", tell_at_once(said, words, (final_intents, of_finals))
    yield "simulator_verbosity_variation", vary(words.lengths[simulated], said.dialogue[simulated], n)
    yield "simulator_mattr", mattr(words.codes[theirs], said.dialogue[words.text[theirs]], n, window)


def compute_health_metrics(
    heard: Heard,
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
    turns = heard.simulated.astype(float)
    asked_for, nothing = turns + heard.given_up, np.zeros(len(turns))
    measured = measure_conversations(heard, window)
    rates = {
        "simulator_label_reask_rate": (heard.label_reasks, asked_for),
        "simulator_role_break_rate": (heard.role_breaks, asked_for),
        **{metric: (measured.pop(metric), turns) for metric in [*measured] if metric.endswith("_share")},
    }
    found = [
        Observed(metric, np.stack([np.array(counts, dtype=float), n], axis=1), ratio(), n, nothing, nothing)
        for metric, (counts, n) in rates.items()
    ]
    found.append(mean_over_units("simulator_early_stop_share", stopped_early.astype(float), void=void))
    found.append(mean_over_units("simulator_fault_share", simulator_fault.astype(float), void=missing))
    return [*found, *(mean_over_units(metric, values, void=void) for metric, values in measured.items())]
