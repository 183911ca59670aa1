"""What of a prediction is laid beside the gold labels. Pure.

Labels that the panel rejected are missing from the gold; a target that predicts them all the same must
not look as if it had made them up.

>>> asked_for({"goal": {"goal1": "a"}}, {"goal": {"goal1": "b", "goal2": "c"}})
{'goal': {'goal1': 'b'}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tasks.foundation.ids import canonical_json
from tasks.foundation.llm.reply import said_in
from tasks.foundation.tables.evaluation import AwarenessPrediction


def select_asked(gold: Any, prediction: Any) -> Any:
    """`prediction` without the keys that `gold` lacks, at every level; lists stay whole."""
    if isinstance(gold, Mapping) and isinstance(prediction, Mapping):
        return {key: select_asked(gold[key], value) for key, value in prediction.items() if key in gold}
    return prediction


def read_answer(gold: str, prediction: AwarenessPrediction) -> str:
    """The target's answer as the judge sees it: its labels as JSON, else what it wrote (its reasoning aside).

    Empty when the target gave nothing.
    """
    if prediction.prediction is None:
        return said_in(prediction.raw)
    return canonical_json(select_asked(json.loads(gold), json.loads(prediction.prediction)))
