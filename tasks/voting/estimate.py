"""What the voting stage asks of each dialogue: the annotators' reviews, and the panel's votes on what they dispute."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tasks.foundation.demo.elements import reviewed_labels
from tasks.foundation.demo.records import Record
from tasks.foundation.ids import canonical_json
from tasks.foundation.planning.estimate import Ask, Estimate, Portion, View
from tasks.foundation.planning.extremes import compact
from tasks.foundation.planning.meter import PromptSize, Reply
from tasks.foundation.planning.records import longest_labels, records
from tasks.foundation.planning.span import Span
from tasks.foundation.settings.sections import VotingSection
from tasks.voting.ballots import Ballot
from tasks.voting.prompts import (
    REVIEW,
    VOTE,
    most_changes,
    most_votes,
    review_inputs,
    review_reply,
    vote_inputs,
    vote_reply,
)
from tasks.voting.task import Labels, sections_of


@dataclass(frozen=True, slots=True)
class Shown:
    """The labels of one section as they stand in the longest dialogue of a language, and in the shortest (None: it
    has no such section)."""

    language: str
    record: Record
    labels: Labels
    shortest: tuple[Record, Labels] | None


def estimate(view: View) -> Estimate:
    section = view.settings.voting
    asks: list[Ask] = []
    for portion in view.portions("dialogues"):
        for shown in _sections(view, portion):
            everywhere = all(one.shortest is not None for one in shown)
            rows = Span(portion.rows.low if everywhere else 0, portion.rows.high)
            asks += [_review(view, alias, rows, shown) for alias in section.annotators]
            asks += [_vote(view, alias, rows, shown) for alias in (*section.annotators, section.arbiter)]
    said = (
        f"{len(section.annotators)} annotators review every label of every dialogue; between none and all of what they "
        f"may list (labels a request: {most_changes(10**6, section.max_tokens)}) is disputed and goes to a vote of "
        f"{len(section.annotators) + 1}"
    )
    return Estimate(asks, {}, [said] if asks else [])


def _sections(view: View, portion: Portion) -> Iterator[list[Shown]]:
    """Section by section what is shown of it, for each language the dialogues may have."""
    size = view.settings.voting.utterances_per_request
    pairs = [pair for kind in portion.kinds if (pair := records(view, kind.language)) is not None]
    if not pairs or not portion.rows.high:
        return
    cut = [[sections_of(reviewed_labels(record), size) for record in pair] for pair in pairs]
    for place in range(max(len(long) for _, long in cut)):
        yield [
            Shown(
                pair[1].dialogue.language,
                pair[1],
                long[place],
                (pair[0], short[place]) if place < len(short) else None,
            )
            for pair, (short, long) in zip(pairs, cut, strict=True)
            if place < len(long)
        ]


def _review(view: View, alias: str, rows: Span, shown: Sequence[Shown]) -> Ask:
    meter, most_tokens = view.meter(alias), view.settings.voting.max_tokens
    prompts, schemas = [], []
    for one in shown:
        for record, labels in filter(None, (one.shortest, (one.record, one.labels))):
            most = most_changes(len(labels), most_tokens)
            prompts.append(meter.messages(REVIEW.render(one.language, review_inputs(record, labels, most))))
            schemas.append(meter.reply(review_reply(tuple(labels), most), one.language))
    reply = Reply(Span.around(each.schema for each in schemas), min(each.least for each in schemas))
    return Ask(alias, "review", rows, PromptSize.around(prompts), reply, most_tokens)


def _vote(view: View, alias: str, rows: Span, shown: Sequence[Shown]) -> Ask:
    """At most: every label that the annotators may list is disputed, by each of them in another way."""
    section, meter = view.settings.voting, view.meter(alias)
    prompts, replies, parts = [], [], 0
    for one in shown:
        ballots = _ballots(one, section)
        together = ballots[: most_votes(section.max_tokens)]
        parts = max(parts, math.ceil(len(ballots) / most_votes(section.max_tokens)))
        prompts.append(meter.messages(VOTE.render(one.language, vote_inputs(one.record, together))))
        replies.append(meter.reply(vote_reply(tuple(len(each.candidates) for each in together)), one.language))
    reply = Reply(Span.around(each.schema for each in replies), 0)
    return Ask(alias, "vote", Span(0, rows.high * parts), PromptSize.around(prompts), reply, section.max_tokens)


def _ballots(shown: Shown, section: VotingSection) -> list[Ballot]:
    """The most and longest ballots that a section's labels can come to."""
    annotators = len(section.annotators)
    listed = annotators * most_changes(len(shown.labels), section.max_tokens)
    longest = longest_labels(shown.record)
    paths = sorted(shown.labels, key=lambda path: -len(compact(longest[path])))[:listed]
    texts = {path: canonical_json(longest[path]) for path in paths}
    return [Ballot(path, texts[path], (texts[path],) * (annotators + 1)) for path in paths]
