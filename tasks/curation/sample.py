"""Which dialogues and utterances become items: seeded, and utterances spread over emotions. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tasks.foundation.ids import digest, seeded_order


def sample_ids(ids: Sequence[str], count: int, seed: int, purpose: str) -> list[str]:
    """At most `count` of `ids`, drawn independently for each purpose, whatever order they come in."""
    return [ids[place] for place in seeded_order(ids, seed, purpose)[:count]]


def sample_utterances(emotions: Mapping[str, Mapping[int, str]], count: int, seed: int) -> list[tuple[str, int]]:
    """At most `count` (dialogue, turn) pairs, one a dialogue.

    `emotions`: the emotion of each turn that may be asked about, by dialogue and turn. From each dialogue,
    in seeded order, comes the turn whose emotion was taken least so far; ties in seeded order.
    """
    ids = [dialogue for dialogue, turns in emotions.items() if turns]
    taken: Counter[str] = Counter()
    chosen = []
    for dialogue in sample_ids(ids, count, seed, "utterance"):
        turns = emotions[dialogue]
        turn = min(turns, key=lambda turn: (taken[turns[turn]], digest(seed, dialogue, turn)))
        taken[turns[turn]] += 1
        chosen.append((dialogue, turn))
    return chosen
