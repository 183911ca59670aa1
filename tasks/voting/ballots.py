"""From the reviews of one label to the candidates put to the vote, and from the votes to its verdict. Pure.

* Every review keeps the label: it stands, `unanimous`, and nobody votes.
* A label somebody would change or reject is put to the vote: the original, each different edit, and
  "reject" when anyone rejected.
* Nobody proposed anything, but a review could not be read: there is one candidate, so a vote would
  decide nothing. The keeps count as votes of the configured panel; without a strict majority the label
  is `manual`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tasks.foundation.demo.elements import comparison_key
from tasks.foundation.ids import canonical_json, seeded_order
from tasks.foundation.tables.dialogues import Verdict
from tasks.voting.tally import Tally, count_votes

REJECT = "reject"
"""Stands for the candidate "reject the label"; no JSON value is spelled so (a text has quotes)."""


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """What one annotator says of one label. `action` None: its reply could not be read."""

    action: Literal["keep", "edit", "reject"] | None
    value: Any = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Ballot:
    """One label and its candidates as shown: each the canonical JSON of a value, or `REJECT`."""

    path: str
    original: str
    candidates: tuple[str, ...]

    @property
    def disputed(self) -> bool:
        return len(self.candidates) > 1

    @property
    def as_json(self) -> str:
        """`votes.candidates`: [{"value": …}, {"reject": true}] in the order shown."""
        shown = [{"reject": True} if one == REJECT else {"value": json.loads(one)} for one in self.candidates]
        return canonical_json(shown)


def make_ballot(dialogue_id: str, path: str, original: Any, answers: Sequence[ReviewAnswer]) -> Ballot:
    """The distinct candidates for a label, in a shuffle seeded by the label's own id.

    Values that differ only in Unicode form, case or spaces are one candidate, spelled as the original
    or else as the first of its spellings in code point order: who proposed it makes no difference.
    """
    spelling = {comparison_key(original): canonical_json(original)}
    edits = sorted(canonical_json(answer.value) for answer in answers if answer.action == "edit")
    for edit in edits:
        spelling.setdefault(comparison_key(json.loads(edit)), edit)
    rejected = any(answer.action == "reject" for answer in answers)
    candidates = [*(spelling[key] for key in sorted(spelling)), *([REJECT] if rejected else [])]
    order = seeded_order(candidates, "ballot", dialogue_id, path)
    return Ballot(path, canonical_json(original), tuple(candidates[place] for place in order))


def decide_verdict(
    dialogue_id: str, ballot: Ballot, answers: Sequence[ReviewAnswer], votes: Sequence[int | None], panel: int
) -> Verdict:
    """The verdict on a label; `votes` are indices into the ballot's candidates, one a panel member."""
    if ballot.disputed:
        count = count_votes([None if vote is None else ballot.candidates[vote] for vote in votes], panel)
        return _make_verdict(dialogue_id, ballot, count, panel)
    keeps = [ballot.original for answer in answers if answer.action is not None]
    if answers and len(keeps) == len(answers):
        return _make_verdict(dialogue_id, ballot, Tally("unanimous", ballot.original, len(keeps), len(keeps)), None)
    return _make_verdict(dialogue_id, ballot, count_votes(keeps, panel), None)


def _make_verdict(dialogue_id: str, ballot: Ballot, count: Tally[str], panel: int | None) -> Verdict:
    rejected = count.winner == REJECT
    value = None if rejected else count.winner or ballot.original
    return Verdict(
        dialogue_id=dialogue_id,
        element=ballot.path,
        outcome="rejected" if rejected else count.outcome,
        value=value,
        pending=count.outcome == "manual",
        changed=value != ballot.original,
        votes_for=count.votes_for,
        votes_cast=count.votes_cast,
        panel=panel,
    )
