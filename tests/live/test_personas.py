"""The personas stage with the real encoder: the duplicates planted in the bundled sample."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tasks.foundation.ids import content_id
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.weights import missing
from tasks.personas.task import STAGE
from tests.unit.source_stages import SAMPLE, FakeContext, rows_of

PLANTED: dict[str, Any] = json.loads((SAMPLE / "planted.json").read_text(encoding="utf-8"))


@pytest.mark.live
def test_the_planted_duplicates_and_no_others_are_dropped() -> None:
    if missing("all-minilm-l6-v2"):
        pytest.skip("the encoder's weights are not on this machine")
    context = FakeContext(STAGE, encoder=Encoder("all-minilm-l6-v2"))
    dropped = rows_of(STAGE.prepare(context).rows["duplicates"])
    expected = set()
    for pool, name in (("nemotron_usa", "nemotron"), ("personamem_v2", "personamem")):
        for pair in PLANTED[name]["near_duplicates"] + PLANTED[name]["exact_duplicates"]:
            expected.add(frozenset(content_id("persona", pool, str(key)) for key in pair))
    assert {frozenset((row.row_id, row.duplicate_of)) for row in dropped} == expected  # type: ignore[attr-defined]
    assert Counter(row.method for row in dropped) == {"embedding": 22, "exact": 2}  # type: ignore[attr-defined]
