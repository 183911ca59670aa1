"""What stands for each label once the panel and, where it could not decide, people have spoken. Pure.

Only `manual` labels are settled by people. Their answers count when they were given to the value that
stands now (`value_hash`); a strict majority of the reviewers who answered so decides, one alone too.
Without one the original value stands and stays pending.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.foundation.demo.elements import check_value, comparison_key, find_kind, value_hash
from tasks.foundation.errors import TableError
from tasks.foundation.tables.dialogues import HumanReview, Verdict

_REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Settled:
    """One label as it goes into the benchmark. `rejected`: it is left out and `value` means nothing."""

    value: Any
    rejected: bool = False
    pending: bool = False


Labels = Mapping[str, Settled]
"""The settled labels of one dialogue, by path."""


def settle(verdict: Verdict, answers: Sequence[HumanReview]) -> Settled:
    """The label of a verdict, settled by the human `answers` to it where the panel could not decide."""
    if verdict.value is None:
        return Settled(None, rejected=True)
    value = json.loads(verdict.value)
    if not verdict.pending:
        return Settled(value)
    shown = value_hash(verdict.value)
    opinions = [_opinion(answer, value) for answer in answers if answer.value_hash == shown]
    counts = Counter(_key(opinion) for opinion in opinions)
    decided = next((key for key, count in counts.items() if 2 * count > len(opinions)), None)
    if decided is None:
        return Settled(value, pending=True)
    same = [opinion for opinion in opinions if _key(opinion) == decided]
    return min(same, key=lambda opinion: json.dumps(opinion.value, sort_keys=True, ensure_ascii=False))


def _opinion(answer: HumanReview, value: Any) -> Settled:
    """The label as one reviewer wants it; TableError for an edit that the element cannot have."""
    if answer.action == "reject":
        return Settled(None, rejected=True)
    if answer.action == "keep" or answer.proposed is None:
        return Settled(value)
    try:
        proposed = check_value(answer.element, json.loads(answer.proposed))
    except ValueError as error:
        raise TableError(
            f"table human_reviews, dialogue {answer.dialogue_id}, element {answer.element}, reviewer "
            f"{answer.reviewer!r}: {answer.proposed!r} is no value of this element: {error}"
        ) from None
    return Settled(value if comparison_key(proposed) == comparison_key(value) else proposed)


def _key(opinion: Settled) -> str:
    return _REJECT if opinion.rejected else comparison_key(opinion.value)


def explain_exclusion(labels: Labels) -> tuple[str, str] | None:
    """The reason (a word to count, and a sentence) why a dialogue leaves the benchmark; None: it stays.

    Without its goals, its scene or what was said there is nothing to ask about; any other rejected
    label is merely left out.
    """
    rejected = [path for path, label in labels.items() if label.rejected and _carries_dialogue(path)]
    if not rejected:
        return None
    return _REASONS[find_kind(rejected[0]).group], f"the panel rejected {', '.join(rejected)}"


def restore_rejected(labels: Labels, originals: Mapping[str, Any]) -> Labels:
    """`labels` with the original where the panel rejected what a dialogue cannot do without; those are pending."""
    return {
        path: Settled(originals[path], pending=True) if label.rejected and _carries_dialogue(path) else label
        for path, label in labels.items()
    }


def pick_least_rejected(labels: Mapping[str, Labels], count: int) -> list[str]:
    """The `count` dialogues in which the panel rejected the fewest labels, ties by id."""

    def rejected(dialogue_id: str) -> int:
        return sum(label.rejected for label in labels[dialogue_id].values())

    return sorted(labels, key=lambda dialogue_id: (rejected(dialogue_id), dialogue_id))[:count]


_REASONS = {"goal": "rejected_goal", "scene": "rejected_scene", "utterance": "rejected_utterance_text"}


def _carries_dialogue(path: str) -> bool:
    kind = find_kind(path)
    return kind.group == "scene" or kind.name in ("goal1", "goal2", "text")


def settle_all(verdicts: Iterable[Verdict], answers: Iterable[HumanReview]) -> dict[str, dict[str, Settled]]:
    """The settled labels of every dialogue that has verdicts, by dialogue and path."""
    of_label: dict[tuple[str, str], list[HumanReview]] = {}
    for answer in answers:
        of_label.setdefault((answer.dialogue_id, answer.element), []).append(answer)
    settled: dict[str, dict[str, Settled]] = {}
    for verdict in verdicts:
        label = settle(verdict, of_label.get((verdict.dialogue_id, verdict.element), ()))
        settled.setdefault(verdict.dialogue_id, {})[verdict.element] = label
    return settled
