"""Warm-up weights of the turns of one dialogue (EYT-Bench, Eq. 4 and Table 2).

>>> [round(float(weight), 3) for weight in turn_weights(4, 0.10)]
[0.1, 0.1, 0.4, 0.4]
"""

from __future__ import annotations

import numpy as np


def turn_weights(turns: int, alpha: float) -> np.ndarray:
    """Weights [turns] that sum to 1, made for the dialogue's own length.

    1 turn → [1]; 2 → [0.5, 0.5]; else the first two `alpha` each and the others (1 − 2·alpha) / (turns − 2).
    No turns → an empty array. ValueError unless 0 < alpha < 0.5 and turns ≥ 0.
    """
    if not 0 < alpha < 0.5:
        raise ValueError(f"expected a warm-up weight alpha between 0 and 0.5, found {alpha!r}")
    if turns < 0:
        raise ValueError(f"expected a number of turns, found {turns!r}")
    if turns <= 2:
        return np.full(turns, 1 / max(turns, 1))
    weights = np.full(turns, (1 - 2 * alpha) / (turns - 2))
    weights[:2] = alpha
    return weights
