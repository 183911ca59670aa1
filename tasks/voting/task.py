"""Reviews and votes on every label of every dialogue (DEMO section 3.2, quality control; design: voting).

Reads dialogues, utterances, pairings, conflicts, scenes and characters. Writes reviews (what each
annotator says of each label), votes (of the whole panel, where the reviews do not all keep a label), vote_repeats (a
share of the votes once more, candidates in reverse order: no verdict counts them) and verdicts (one a label).

Labels are reviewed in sections: goal, persona, scene, and utterances in chunks of
`utterances_per_request`; the disputed ones of a section are voted on together, as many as `max_tokens` has
room for. With A annotators, T utterances in C chunks and D sections holding a disputed label, a dialogue
takes A × (3 + C) reviews and (A + 1) × D votes, D ≤ 3 + C. A reply that stays unreadable is a missing
review or vote, never a failure of the dialogue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tasks.foundation.demo.elements import check_value, collect_reviewed_labels, comparison_key, find_kind, number_of
from tasks.foundation.demo.records import RECORD_TABLES, Record, load_records
from tasks.foundation.errors import ModelError
from tasks.foundation.ids import canonical_json, is_drawn
from tasks.foundation.settings.sections import VotingSection
from tasks.foundation.stage import Asker, Prepared, Rows, Stage, StageContext
from tasks.foundation.tables.dialogues import Review, Vote
from tasks.voting.ballots import Ballot, ReviewAnswer, decide_verdict, make_ballot
from tasks.voting.panel import Member, Panel, check_families
from tasks.voting.prompts import (
    REVIEW,
    VOTE,
    Choice,
    ReviewReply,
    limit_changes,
    limit_votes,
    make_review_inputs,
    make_review_reply,
    make_vote_inputs,
    make_vote_reply,
    name_question_field,
)

T = TypeVar("T")
Labels = dict[str, Any]
"""Values by path."""


@dataclass(frozen=True, slots=True)
class PanelSession:
    """One panel member at work on one dialogue: what every request of its has in common."""

    context: StageContext
    ask: Asker
    member: Member
    record: Record

    async def ask_model(self, prompt: Any, inputs: Any, purpose: str, model: Any) -> Any:
        """The reply; ModelError where there is none to be had."""
        section = self.context.settings.voting
        return await self.ask(
            prompt,
            inputs,
            language=self.record.dialogue.language,
            alias=self.member.alias,
            purpose=purpose,
            temperature=section.temperature,
            max_tokens=section.max_tokens,
            reply=model,
        )

    async def in_parts(
        self, paths: tuple[str, ...], ask: Callable[[tuple[str, ...]], Awaitable[dict[str, T]]]
    ) -> dict[str, T]:
        """What there is for each path; nothing for those that stay unreadable. Failures that may pass later are
        raised."""
        try:
            return await self.ask.in_parts(paths, ask)
        except ModelError as error:
            if error.may_pass_later:
                raise
            return {}


def make_panel(context: StageContext) -> Panel:
    section = context.settings.voting
    members = [Member(alias, context.model(alias).family) for alias in (*section.annotators, section.arbiter)]
    return Panel(tuple(members[:-1]), members[-1])


def prepare(context: StageContext) -> Prepared:
    """Every dialogue is an item."""
    return Prepared(items=context.read("dialogues", columns=("dialogue_id",))["dialogue_id"].to_list())


def load_dialogues(context: StageContext, keys: Sequence[str]) -> Mapping[str, Record]:
    return load_records(context.read, keys)


async def work(context: StageContext, record: Record, ask: Asker) -> Rows:
    """Phase 1, review; phase 2, vote on what is disputed; then one verdict a label."""
    panel = make_panel(context)
    sections = split_labels(collect_reviewed_labels(record), context.settings.voting.utterances_per_request)
    voices = [PanelSession(context, ask, member, record) for member in panel.voters]
    answers = await run_side_by_side(_review(voice, sections) for voice in voices[:-1])
    ballots = [
        [
            make_ballot(record.dialogue.dialogue_id, path, value, [by_path[path] for by_path in answers])
            for path, value in section.items()
        ]
        for section in sections
    ]
    most = limit_votes(context.settings.voting.max_tokens, context.settings.text_limits.remark_words)
    together = [part for section in ballots for part in _split_ballots([one for one in section if one.disputed], most)]
    choices = await run_side_by_side(_vote(voice, together) for voice in voices)
    repeated = [part for part in (_draw_reversed(context, record, section) for section in together) if part]
    again = await run_side_by_side(_vote(voice, repeated) for voice in voices)
    every = [ballot for section in ballots for ballot in section]
    rows = _make_rows(record.dialogue.dialogue_id, panel, every, answers, choices)
    reversed_ballots = [ballot for part in repeated for ballot in part]
    return {**rows, "vote_repeats": _make_vote_rows(record.dialogue.dialogue_id, panel, reversed_ballots, again, 1)}


def split_labels(labels: Labels, utterances: int) -> list[Labels]:
    """`labels` in the portions that one request shows: goal, persona, scene, then chunks of utterances."""
    sections: dict[tuple[str, int], Labels] = {}
    for path, value in labels.items():
        group = find_kind(path).group
        chunk = ((number_of(path) or 1) - 1) // utterances if group == "utterance" else 0
        sections.setdefault((group, chunk), {})[path] = value
    return list(sections.values())


def _draw_reversed(context: StageContext, record: Record, ballots: Sequence[Ballot]) -> list[Ballot]:
    """Those of `ballots` that are voted on again, candidates in reverse order."""
    share, seed = context.settings.voting.reversed_share, context.settings.run.seed
    return [
        replace(ballot, candidates=ballot.candidates[::-1])
        for ballot in ballots
        if is_drawn(share, seed, "reversed", record.dialogue.dialogue_id, ballot.path)
    ]


def _split_ballots(ballots: Sequence[Ballot], most: int) -> list[Sequence[Ballot]]:
    return [ballots[first : first + most] for first in range(0, len(ballots), most)]


async def run_side_by_side(jobs: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All results, in order. Every job ends before an error is raised, so that none goes on unseen; an
    error that stops the run goes before a failure of this row."""
    results = await asyncio.gather(*jobs, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in sorted(errors, key=lambda error: isinstance(error, ModelError)):
        raise error
    return [result for result in results if not isinstance(result, BaseException)]


async def _review(voice: PanelSession, sections: Sequence[Labels]) -> dict[str, ReviewAnswer]:
    """One annotator's answers to all labels, by path."""
    settings = voice.context.settings
    answers: dict[str, ReviewAnswer] = {}
    for section in sections:

        async def review(paths: tuple[str, ...], section: Labels = section) -> dict[str, ReviewAnswer]:
            labels = {path: section[path] for path in paths}
            most = limit_changes(len(labels), settings.voting.max_tokens, settings.text_limits.remark_words)
            inputs = make_review_inputs(voice.record, labels, most)
            return read_answers(await voice.ask_model(REVIEW, inputs, "review", make_review_reply(paths, most)), labels)

        found = await voice.in_parts(tuple(section), review)
        answers |= {path: found.get(path, ReviewAnswer(None)) for path in section}
    return answers


def read_answers(reply: ReviewReply, labels: Labels) -> dict[str, ReviewAnswer]:
    """The answer to each label shown. Unlisted labels are kept, and an edit to the same value is a keep; a
    label with two different answers has none that can be read. Of a reply whose list has items that cannot be used, or
    was cut off, there is no answer to the labels that these may be of."""
    given: dict[str, ReviewAnswer] = {}
    for change in reply.changes:
        answer = _read_answer(change, labels[change.element])
        if not _same(given.setdefault(change.element, answer), answer):
            given[change.element] = ReviewAnswer(None)
    unclear = _list_unclear(reply.lost, labels)
    return {path: given.get(path, ReviewAnswer("keep")) for path in labels if path in given or path not in unclear}


def _list_unclear(lost: Sequence[Any], labels: Labels) -> Collection[str]:
    """The labels that lost changes may be of: those that they name; all, where one names none that is shown."""
    named = [str(item.get("element")) if isinstance(item, dict) else "" for item in lost]
    return set(named) if all(name in labels for name in named) else labels.keys()


def _read_answer(change: Any, original: Any) -> ReviewAnswer:
    if change.action == "reject":
        return ReviewAnswer("reject", reason=change.reason)
    value = check_value(change.element, change.value)
    if comparison_key(value) == comparison_key(original):
        return ReviewAnswer("keep")
    return ReviewAnswer("edit", value, change.reason)


def _same(one: ReviewAnswer, other: ReviewAnswer) -> bool:
    return one.action == other.action and comparison_key(one.value) == comparison_key(other.value)


async def _vote(voice: PanelSession, sections: Sequence[Sequence[Ballot]]) -> dict[str, Choice | None]:
    """One panel member's choices on all disputed labels, by path. None: its reply could not be read."""
    choices: dict[str, Choice | None] = {}
    for section in sections:
        by_path = {ballot.path: ballot for ballot in section}

        async def vote(paths: tuple[str, ...], by_path: Mapping[str, Ballot] = by_path) -> dict[str, Choice]:
            ballots = [by_path[path] for path in paths]
            model = make_vote_reply(tuple(len(ballot.candidates) for ballot in ballots))
            reply = await voice.ask_model(VOTE, make_vote_inputs(voice.record, ballots), "vote", model)
            fields = {name_question_field(number): path for number, path in enumerate(paths, start=1)}
            return {fields[name]: choice for name, choice in reply.parts.items()}

        found = await voice.in_parts(tuple(by_path), vote)
        choices |= {path: found.get(path) for path in by_path}
    return choices


def _make_rows(
    dialogue_id: str,
    panel: Panel,
    ballots: Sequence[Ballot],
    answers: Sequence[Mapping[str, ReviewAnswer]],
    choices: Sequence[Mapping[str, Choice | None]],
) -> Rows:
    reviews = [
        _make_review_row(dialogue_id, path, member, answer)
        for member, by_path in zip(panel.annotators, answers, strict=True)
        for path, answer in by_path.items()
    ]
    votes = _make_vote_rows(dialogue_id, panel, [ballot for ballot in ballots if ballot.disputed], choices, 0)
    verdicts = [
        decide_verdict(
            dialogue_id,
            ballot,
            [by_path[ballot.path] for by_path in answers],
            [_index(by_path.get(ballot.path)) for by_path in choices],
            panel.size,
        )
        for ballot in ballots
    ]
    return {"reviews": reviews, "votes": votes, "verdicts": verdicts}


def _make_vote_rows(
    dialogue_id: str,
    panel: Panel,
    ballots: Sequence[Ballot],
    choices: Sequence[Mapping[str, Choice | None]],
    presentation: int,
) -> list[Vote]:
    return [
        _make_vote_row(dialogue_id, ballot, member, by_path[ballot.path], presentation)
        for ballot in ballots
        for member, by_path in zip(panel.voters, choices, strict=True)
    ]


def _index(choice: Choice | None) -> int | None:
    return None if choice is None else choice.candidate


def _make_review_row(dialogue_id: str, path: str, member: Member, answer: ReviewAnswer) -> Review:
    return Review(
        dialogue_id=dialogue_id,
        element=path,
        annotator=member.alias,
        family=member.family,
        action=answer.action,
        proposed=canonical_json(answer.value) if answer.action == "edit" else None,
        reason=answer.reason,
    )


def _make_vote_row(dialogue_id: str, ballot: Ballot, member: Member, choice: Choice | None, presentation: int) -> Vote:
    return Vote(
        dialogue_id=dialogue_id,
        element=ballot.path,
        voter=member.alias,
        family=member.family,
        candidates=ballot.as_json,
        presentation=presentation,
        candidate=_index(choice),
        reason=None if choice is None else choice.reason,
    )


STAGE = Stage(
    name="voting",
    doc="Labels → reviews by two families of models, votes on what they dispute, verdicts.",
    section=VotingSection,
    benchmark="demo",
    reads=RECORD_TABLES,
    items_from={"": "dialogues"},
    prepare=prepare,
    load_items=load_dialogues,
    work=work,
    worked=("reviews", "votes", "vote_repeats", "verdicts"),
    prompts=(REVIEW, VOTE),
    taxonomies=("gender", "level", "age_band", "familiarity", "talkway", "sentiment", "utterance_emotion", "goal_type"),
    roles=lambda settings: {"annotators": settings.voting.annotators, "arbiter": [settings.voting.arbiter]},
    check=lambda context: check_families(make_panel(context)),
)
