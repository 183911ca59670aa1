"""What is measured of users' messages, told text by text with dictionaries: what the arrays are held against."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.metrics.likeness import FEELING, FEELING_ZH
from tasks.metrics.simulator_health import POLITE, POLITE_ZH, SHORTEST_TERM

Messages = Sequence[str]
_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+(?:['’][^\W_\u3400-\u9fff]+)*")
_HAN = re.compile(r"[\u3400-\u9fff]+")
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


def take_of_messages() -> dict[str, Callable[[str], float]]:
    return {
        "length": lambda text: float(len(tokens(text))),
        "question": lambda text: float(bool(_QUESTION.search(text))),
        "no_end_mark": lambda text: float(not _ENDED.search(text)),
        "typing_slip": lambda text: float(bool(_SLIP.search(text))),
        "polite": lambda text: float(is_polite(text)),
        "feeling": has_feeling,
    }


def take_of_dialogues(window: int) -> dict[str, Callable[[Messages], float]]:
    return {
        "vocabulary": lambda said: mattr(tokens(" ".join(said)), window),
        "own_words_again": repeats_own_words,
        "told_at_once": tells_at_once,
        "length_variation": varies_in_length,
    }
