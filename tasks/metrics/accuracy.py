"""Turn-level accuracy of the predicted labels (EYT-Bench section 3.5.1), pooled over all turns of a cell.

A prediction that is unreadable or out of vocabulary is wrong; a turn whose perception call was lost to
infrastructure is left out of n and counted as a fault, like every turn of a void conversation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tasks.foundation.stats.sums import macro_f1, ratio
from tasks.metrics.observed import Observed


@dataclass(frozen=True, eq=False)
class Turns:
    """Which turns there are: each one's conversation (place in [conversations]) and 1-based position.

    `counted`: its predictions are judged; `void`: it is left out because of a fault. A turn that belongs to
    neither is nobody's. All [turns]. `gone` [conversations]: a fault took it and left no turn; it counts as one.
    """

    conversation: np.ndarray
    position: np.ndarray
    counted: np.ndarray
    void: np.ndarray
    gone: np.ndarray

    @property
    def conversations(self) -> int:
        return len(self.gone)

    @property
    def faults(self) -> np.ndarray:
        """What faults took of each conversation [conversations], in turns."""
        return self.sums(self.void) + self.gone

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Values [turns] summed by conversation."""
        return np.bincount(self.conversation, weights=values.astype(float), minlength=self.conversations)


def accuracy(
    metric: str,
    correct: np.ndarray,
    turns: Turns,
    where: np.ndarray | None = None,
    slice: dict[str, object] | None = None,
) -> Observed:
    """Share of turns predicted right; `correct` [turns], only over the turns of the mask `where`."""
    counted = turns.counted if where is None else turns.counted & where
    faults = turns.faults if where is None else turns.sums(turns.void & where)
    n = turns.sums(counted)
    columns = np.stack([turns.sums(correct & counted), n], axis=1)
    return Observed(metric, columns, ratio(), n, np.zeros_like(n), faults, slice or {})


def label_f1(metric: str, gold: np.ndarray, predicted: np.ndarray, turns: Turns) -> Observed:
    """Macro-F1 over the labels that occur in gold or prediction of the cell; None predicts no label."""
    labels = sorted({*gold[turns.counted], *predicted[turns.counted]} - {None})
    n = turns.sums(turns.counted)
    parts = []
    for chosen in (lambda g, p: g & p, lambda g, p: g, lambda g, p: p):
        parts += [turns.sums(chosen(gold == label, predicted == label) & turns.counted) for label in labels]
    columns = np.stack(parts, axis=1) if parts else np.zeros((turns.conversations, 0))
    return Observed(metric, columns, macro_f1(len(labels)), n, np.zeros_like(n), turns.faults)


def unreadable_share(missing: np.ndarray, turns: Turns) -> Observed:
    """Share of predictions that are unreadable or out of vocabulary; `missing` [turns, 3] labels."""
    n = turns.sums(turns.counted)
    share = np.where(turns.counted, missing.mean(axis=1) if len(missing) else 0.0, 0.0)
    columns = np.stack([turns.sums(share), n], axis=1)
    return Observed("unreadable_share", columns, ratio(), n, np.zeros_like(n), turns.faults)
