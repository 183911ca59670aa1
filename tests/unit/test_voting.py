"""The family rule, ballots, the tally, verdicts, and the requests of the voting stage."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.errors import ConfigError, ModelError
from tasks.foundation.ids import canonical_json
from tasks.foundation.llm.reply import BadReply, read, schema_of
from tasks.voting.ballots import REJECT, Ballot, ReviewAnswer, decide_verdict, make_ballot
from tasks.voting.panel import Member, Panel, check_families
from tasks.voting.prompts import REVIEW, VOTE, limit_changes, make_review_reply, make_vote_reply
from tasks.voting.tally import Tally, count_votes
from tasks.voting.task import STAGE, read_answers, split_labels
from tests.fakes.asker import Asked, FakeAsker
from tests.unit.dialogue_rows import FakeContext, dialogue, prepared, worked, world

KEEP, UNREAD, GONE = ReviewAnswer("keep"), ReviewAnswer(None), ReviewAnswer("reject", reason="empty")


def edit(value: Any) -> ReviewAnswer:
    return ReviewAnswer("edit", value, "better")


# The family rule


def _panel(annotators: str, arbiter: str) -> Panel:
    """'q1 g2' and 's': aliases whose first letter is their family."""
    return Panel(tuple(Member(alias, alias[0]) for alias in annotators.split()), Member(arbiter, arbiter[0]))


def test_two_families_and_an_arbiter_of_a_third_may_vote() -> None:
    check_families(_panel("q1 g1", "s1"))
    check_families(_panel("q1 q2 g1", "s1"))


@pytest.mark.parametrize(
    ("annotators", "arbiter", "message"),
    [
        ("q1 q2", "s1", r"at least two model families, found one: q1 \(q\), q2 \(q\)"),
        ("q1 g1", "g2", r"g2 \(g\) is of the same family as an annotator; expected one other than g, q"),
        ("q1 g1", "g1", r"g1 \(g\) is also an annotator"),
        ("q1 q1 g1", "s1", "expected different aliases, found q1, q1, g1"),
    ],
)
def test_a_panel_that_could_agree_with_itself_is_refused_by_name(annotators: str, arbiter: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_families(_panel(annotators, arbiter))


def test_the_stage_checks_the_families_of_its_settings() -> None:
    STAGE.check(FakeContext({}))
    with pytest.raises(ConfigError, match="found one"):
        STAGE.check(FakeContext({}, "voting.annotators=[scripted-a, twin-of-a]"))
    with pytest.raises(ConfigError, match="same family"):
        STAGE.check(FakeContext({}, "voting.arbiter=twin-of-b"))


# The tally


@pytest.mark.parametrize(
    ("votes", "panel", "expected"),
    [
        ([0, 0, 0], 3, Tally("unanimous", 0, 3, 3)),
        ([0, 1, 1], 3, Tally("majority", 1, 2, 3)),
        ([0, 1, 2], 3, Tally("manual", None, 1, 3)),
        ([1, 1, None], 3, Tally("majority", 1, 2, 2)),  # 2 of 3 configured, though all cast alike
        ([1, None, None], 3, Tally("manual", None, 1, 1)),  # the only vote cast is not a majority of 3
        ([0, 0, 1, 1], 4, Tally("manual", None, 2, 4)),  # half is not more than half
        ([0, 0, 0, 1], 4, Tally("majority", 0, 3, 4)),
        ([], 3, Tally("manual", None, 0, 0)),
        ([1, 1], 3, Tally("majority", 1, 2, 2)),  # a member that never voted counts in the panel
    ],
)
def test_more_than_benchmark_of_the_configured_panel_decides(
    votes: list[int | None], panel: int, expected: Tally[int]
) -> None:
    assert count_votes(votes, panel) == expected


def test_more_votes_than_members_are_a_fault() -> None:
    with pytest.raises(ValueError, match="at most 2 votes, found 3"):
        count_votes([0, 0, 0], 2)


@given(st.lists(st.none() | st.integers(0, 3), max_size=7), st.integers(0, 3), st.randoms())
def test_the_order_of_the_votes_never_matters_and_a_winner_has_a_strict_majority(
    votes: list[int | None], silent: int, random: Any
) -> None:
    panel = len(votes) + silent
    counted = count_votes(votes, panel)
    shuffled = votes[:]
    random.shuffle(shuffled)
    assert count_votes(shuffled, panel) == counted
    assert counted.votes_for <= counted.votes_cast <= panel
    assert (counted.outcome == "manual") == (counted.winner is None)
    assert (counted.winner is not None) == (2 * counted.votes_for > panel)
    assert (counted.outcome == "unanimous") == (counted.winner is not None and votes.count(counted.winner) == panel)


# Ballots and verdicts


def _verdict(ballot: Ballot, answers: list[ReviewAnswer], choices: list[str | None], panel: int = 3):
    votes = [None if one is None else ballot.candidates.index(one) for one in choices]
    return decide_verdict("d", ballot, answers, votes, panel)


def _ballot(*answers: ReviewAnswer, original: Any = "Fear") -> Ballot:
    return make_ballot("d", "utterance.1.emotion", original, answers)


def test_a_label_that_every_review_keeps_stands_without_a_vote() -> None:
    ballot = _ballot(KEEP, KEEP)
    verdict = decide_verdict("d", ballot, [KEEP, KEEP], [None, None, None], 3)
    assert not ballot.disputed
    assert (verdict.outcome, verdict.value, verdict.panel) == ("unanimous", '"Fear"', None)
    assert (verdict.votes_for, verdict.votes_cast, verdict.pending, verdict.changed) == (2, 2, False, False)


def test_candidates_are_the_original_the_different_edits_and_reject_when_anyone_rejected() -> None:
    assert set(_ballot(KEEP, edit("Anger")).candidates) == {'"Fear"', '"Anger"'}
    assert set(_ballot(edit("Anger"), edit("ａｎｇｅｒ ")).candidates) == {'"Fear"', '"Anger"'}
    assert set(_ballot(edit(" FEAR"), KEEP).candidates) == {'"Fear"'}
    assert set(_ballot(GONE, edit("Anger")).candidates) == {'"Fear"', '"Anger"', REJECT}
    assert _ballot(GONE, UNREAD).disputed


def test_the_text_reject_is_not_the_candidate_reject() -> None:
    ballot = _ballot(edit("reject"), GONE)
    assert len(ballot.candidates) == 3
    shown = json.loads(ballot.as_json)
    assert {canonical_json(one) for one in shown} == {'{"value":"Fear"}', '{"value":"reject"}', '{"reject":true}'}


def test_a_majority_for_an_edit_changes_the_label() -> None:
    answers = [edit("Anger"), KEEP]
    verdict = _verdict(_ballot(*answers), answers, ['"Anger"', '"Fear"', '"Anger"'])
    assert (verdict.outcome, verdict.value, verdict.changed, verdict.pending) == ("majority", '"Anger"', True, False)
    assert (verdict.votes_for, verdict.votes_cast, verdict.panel) == (2, 3, 3)


def test_a_majority_for_reject_leaves_the_label_without_a_value() -> None:
    answers = [GONE, KEEP]
    for choices in ([REJECT, REJECT, '"Fear"'], [REJECT] * 3):
        verdict = _verdict(_ballot(*answers), answers, choices)
        assert (verdict.outcome, verdict.value, verdict.changed, verdict.pending) == ("rejected", None, True, False)


def test_tied_votes_leave_the_element_for_manual_review_with_its_original_value() -> None:
    answers = [GONE, edit("Anger")]
    verdict = _verdict(_ballot(*answers), answers, [REJECT, '"Anger"', '"Fear"'])
    assert (verdict.outcome, verdict.value, verdict.pending, verdict.changed) == ("manual", '"Fear"', True, False)
    assert (verdict.votes_for, verdict.votes_cast, verdict.panel) == (1, 3, 3)


def test_missing_votes_never_help_a_candidate() -> None:
    answers = [edit("Anger"), KEEP]
    verdict = _verdict(_ballot(*answers), answers, ['"Anger"', None, None])
    assert (verdict.outcome, verdict.votes_for, verdict.votes_cast) == ("manual", 1, 1)


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ([KEEP, UNREAD], "manual"),  # 1 keep of a panel of 3
        ([UNREAD, UNREAD], "manual"),
        ([KEEP, KEEP, UNREAD], "manual"),  # 2 keeps of a panel of 4: half
        ([KEEP, KEEP, KEEP, UNREAD], "majority"),  # 3 of 5
    ],
)
def test_keeps_beside_an_unreadable_review_count_as_votes_of_the_configured_panel(
    answers: list[ReviewAnswer], outcome: str
) -> None:
    ballot = _ballot(*answers)
    verdict = decide_verdict("d", ballot, answers, [None] * (len(answers) + 1), len(answers) + 1)
    assert not ballot.disputed
    assert (verdict.outcome, verdict.value, verdict.panel) == (outcome, '"Fear"', None)
    assert verdict.pending == (outcome == "manual")


ANSWERS = st.lists(
    st.sampled_from([KEEP, UNREAD, GONE, edit("Anger"), edit("anger"), edit("ANGER "), edit("Joy")]),
    min_size=2,
    max_size=4,
)


@given(ANSWERS, st.data())
def test_the_order_of_panel_members_never_changes_a_ballot_or_a_verdict(answers: list[ReviewAnswer], data: Any) -> None:
    ballot = _ballot(*answers)
    choice = st.none() | st.integers(0, len(ballot.candidates) - 1)
    votes = data.draw(st.lists(choice, min_size=len(answers) + 1, max_size=len(answers) + 1))
    verdict = decide_verdict("d", ballot, answers, votes, len(votes))
    mixed_answers, mixed_votes = data.draw(st.permutations(answers)), data.draw(st.permutations(votes))
    assert _ballot(*mixed_answers) == ballot
    assert decide_verdict("d", ballot, mixed_answers, mixed_votes, len(votes)) == verdict
    assert (verdict.value is None) == (verdict.outcome == "rejected")
    assert verdict.pending == (verdict.outcome == "manual")
    if verdict.pending:
        assert verdict.value == ballot.original


def test_candidates_are_shuffled_by_the_label_and_not_by_chance() -> None:
    def firsts(dialogue_id: str) -> list[str]:
        answers = [edit("Anger"), edit("Joy")]
        ballots = (make_ballot(dialogue_id, f"utterance.{turn}.emotion", "Fear", answers) for turn in range(1, 40))
        return [ballot.candidates[0] for ballot in ballots]

    assert firsts("d") == firsts("d") != firsts("e")
    assert set(firsts("d")) == {'"Fear"', '"Anger"', '"Joy"'}


# Reviews


PATHS = ("goal.goal1", "scene.familiarity", "scene.talkway", "utterance.1.stance", "utterance.2.stance")


def _change(element: str, value: Any = None, action: str = "edit") -> dict[str, Any]:
    change = {"element": element, "action": action, "reason": "r"}
    return change | {"value": value} if action == "edit" else change


def _read(*changes: dict[str, Any], paths: tuple[str, ...] = PATHS):
    return read(json.dumps({"changes": list(changes)}), make_review_reply(paths, 8), "stop")


@pytest.mark.parametrize(
    "change",
    [
        _change("scene.familiarity", "7"),
        _change("scene.familiarity", 11),
        _change("scene.talkway", "telepathy"),
        _change("goal.goal1", 3),
        _change("utterance.1.stance", "angry"),
        _change("goal.goal2", "not shown"),
        _change("persona.1.name", action="reject"),
        {"element": "goal.goal1", "action": "edit", "reason": "no value"},
    ],
)
def test_an_edit_that_does_not_fit_its_element_is_no_reply(change: dict[str, Any]) -> None:
    with pytest.raises(BadReply):
        _read(change)


def test_the_schema_of_a_review_ties_every_element_to_its_type_and_bounds_the_list() -> None:
    schema = schema_of(make_review_reply(PATHS, 4))
    changes = schema["properties"]["changes"]
    assert changes["maxItems"] == 4
    by_element = {}
    for option in changes["items"]["anyOf"]:
        element = option["properties"]["element"]
        for path in element.get("enum") or [element["const"]]:
            by_element.setdefault(path, []).append(option["properties"].get("value", {}).get("type", "reject"))
    assert by_element == {
        "goal.goal1": ["string", "reject"],
        "scene.familiarity": ["integer", "reject"],
        "scene.talkway": ["string", "reject"],
        "utterance.1.stance": ["array", "reject"],
        "utterance.2.stance": ["array", "reject"],
    }
    assert "$ref" not in json.dumps(schema)
    assert "oneOf" not in json.dumps(schema)


@pytest.mark.parametrize(
    ("labels", "max_tokens", "expected"), [(4, 1500, 4), (36, 1500, 12), (36, 400, 4), (36, 50, 1), (18, 4000, 12)]
)
def test_a_review_lists_no_more_changes_than_its_budget_has_room_for(
    labels: int, max_tokens: int, expected: int
) -> None:
    assert limit_changes(labels, max_tokens, 12) == expected


def test_votes_are_asked_for_in_portions_that_fit_the_budget() -> None:
    answer = _changes_of(
        scripted_a=[_change("persona.1.hobby", "other")],
        scripted_b=[_change("persona.2.hobby", "other")],
        twin_of_a=[_change("persona.2.culture", "other")],
    )
    panel = "voting.annotators=[scripted-a, scripted-b, twin-of-a]"
    context, ask, _ = _run(answer, panel, "voting.max_tokens=100")
    # 100 tokens have room for one change and two votes: three disputed labels make two portions for 4 voters
    assert ask.count("vote") == 2 * 4
    assert context.made("votes").height == 3 * 4


LABELS = {
    "goal.goal1": "find out",
    "scene.familiarity": 4,
    "scene.talkway": "email",
    "utterance.1.stance": [],
    "utterance.2.stance": [],
}


def test_what_a_review_does_not_list_is_kept_and_an_edit_to_the_same_value_is_a_keep() -> None:
    reply = _read(
        _change("scene.familiarity", 6),
        _change("goal.goal1", " Find  OUT"),
        _change("scene.talkway", action="reject"),
    )
    answers = read_answers(reply, LABELS)
    assert {path: answer.action for path, answer in answers.items()} == {
        "goal.goal1": "keep",
        "scene.familiarity": "edit",
        "scene.talkway": "reject",
        "utterance.1.stance": "keep",
        "utterance.2.stance": "keep",
    }
    assert answers["scene.familiarity"].value == 6


def test_two_different_answers_to_one_label_are_no_answer_and_two_alike_are_one() -> None:
    reply = _read(
        _change("scene.familiarity", 6),
        _change("scene.familiarity", 8),
        _change("scene.familiarity", 6),
        _change("scene.talkway", "letter"),
        _change("scene.talkway", "letter"),
    )
    answers = read_answers(reply, LABELS)
    assert answers["scene.familiarity"].action is None
    assert answers["scene.talkway"].value == "letter"


def test_an_emotion_is_edited_under_its_canonical_name() -> None:
    path = "utterance.1.emotion"
    reply = _read(_change(path, "愤怒"), paths=(path,))
    assert read_answers(reply, {path: "Fear"})[path].value == "Anger"
    assert read_answers(reply, {path: "Anger"})[path].action == "keep"


def test_labels_are_shown_in_four_groups_and_utterances_in_chunks() -> None:
    labels = {"goal.goal1": 1, "persona.1.name": 1, "persona.2.name": 1, "scene.topic": 1}
    labels |= {f"utterance.{turn}.{name}": 1 for turn in range(1, 6) for name in ("intent", "text")}
    sections = split_labels(labels, 2)
    assert [len(section) for section in sections] == [1, 2, 1, 4, 4, 2]
    assert list(sections[-1]) == ["utterance.5.intent", "utterance.5.text"]


def test_a_vote_is_one_of_the_candidates_shown_or_none() -> None:
    model = make_vote_reply((2, 3))

    def voted(one: Any, two: Any):
        choices = {"question_1": one, "question_2": two}
        return read(json.dumps({k: {"reason": "r", "candidate": v} for k, v in choices.items()}), model, "stop")

    assert voted(1, None).question_1.candidate == 1
    for one, two in ((2, 0), (-1, 0), (0, 3), ("1", 0), (0.5, 0)):
        assert len(voted(one, two).parts) == 1
    with pytest.raises(BadReply):
        voted(2, 3)


def test_review_and_vote_share_their_system_message() -> None:
    for language in ("en", "zh"):
        assert REVIEW._file(language).system == VOTE._file(language).system


# The stage


def _run(answer, *overrides: str, dialogues=None) -> tuple[FakeContext, FakeAsker, dict[str, str]]:
    context = FakeContext(world(dialogues or [dialogue(0, turns=4)]), *overrides)
    ask = FakeAsker(answer)
    return context, ask, asyncio.run(worked(STAGE, context, ask, prepared(STAGE, context)))


def _changes_of(**by_alias: list[dict[str, Any]]):
    """Reviews that list these changes where their section is shown; votes for the first candidate."""

    def answer(asked: Asked, model: Any) -> Any:
        if asked.purpose == "review":
            shown = " ".join(asked.inputs.labels)
            mine = by_alias.get(asked.alias.replace("-", "_"), [])
            return {"changes": [change for change in mine if change["element"].rsplit(".", 1)[0] in shown]}
        names = list(schema_of(model)["properties"])
        return {name: {"reason": "r", "candidate": 0} for name in names}

    return answer


def test_a_dialogue_that_everyone_keeps_takes_one_request_a_section_and_annotator_and_no_vote() -> None:
    context, ask, failed = _run(_changes_of(), "voting.utterances_per_request=3")
    # 2 annotators × (goal, persona, scene, turns 1–3, turn 4)
    assert (failed, ask.count("review"), ask.count("vote")) == ({}, 10, 0)
    verdicts = context.made("verdicts")
    assert verdicts.height == 4 + 18 + 6 + 4 * 6
    assert set(verdicts["outcome"]) == {"unanimous"}
    assert context.made("reviews").height == 2 * verdicts.height
    assert context.made("votes").is_empty()


def test_only_sections_with_a_disputed_label_are_voted_on_by_the_whole_panel() -> None:
    disputes = [_change("scene.familiarity", 6), _change("utterance.4.emotion", "Anger")]
    context, ask, _ = _run(_changes_of(scripted_b=disputes), "voting.utterances_per_request=3")
    # 3 voters × 2 sections; the arbiter reviews nothing
    assert (ask.count("review"), ask.count("vote")) == (10, 6)
    assert {asked.alias for asked in ask.asked if asked.purpose == "review"} == {"scripted-a", "scripted-b"}
    votes = context.made("votes")
    assert votes.height == 6
    assert set(votes["voter"]) == {"scripted-a", "scripted-b", "scripted-c"}
    decided = context.made("verdicts").filter(element="scene.familiarity").row(0, named=True)
    first = json.loads(votes.filter(element="scene.familiarity")["candidates"][0])[0]["value"]
    assert (decided["outcome"], json.loads(decided["value"]), decided["panel"]) == ("unanimous", first, 3)


@pytest.mark.parametrize(("share", "twice"), [(0, 0), (1, 2)])
def test_a_share_of_the_labels_is_voted_on_again_in_reverse_order_and_changes_no_verdict(
    share: int, twice: int
) -> None:
    disputes = [_change("scene.familiarity", 6), _change("utterance.4.emotion", "Anger")]
    context, ask, _ = _run(_changes_of(scripted_b=disputes), f"voting.reversed_share={share}")
    votes, again = context.made("votes"), context.made("vote_repeats")
    assert (ask.count("vote"), again.height) == (3 * (2 + twice), 3 * twice)
    assert set(again["presentation"]) <= {1}
    for row in again.to_dicts():
        one = votes.filter(element=row["element"], voter=row["voter"]).row(0, named=True)
        assert json.loads(row["candidates"]) == json.loads(one["candidates"])[::-1]
    plain, _, _ = _run(_changes_of(scripted_b=disputes))
    assert context.made("verdicts").equals(plain.made("verdicts"))


def test_voters_see_no_author_and_reviewers_no_other_review() -> None:
    _, ask, _ = _run(_changes_of(scripted_b=[_change("scene.familiarity", 6)]))
    votes = [asked for asked in ask.asked if asked.purpose == "vote"]
    assert len({asked.user for asked in votes}) == 1
    assert not any(alias in votes[0].user for alias in ("scripted", "annotator"))
    of = {
        alias: [a.user for a in ask.asked if a.purpose == "review" and a.alias == alias]
        for alias in ("scripted-a", "scripted-b")
    }
    assert of["scripted-a"] == of["scripted-b"]


def test_all_requests_about_a_dialogue_share_system_message_and_transcript() -> None:
    _, ask, _ = _run(_changes_of(scripted_a=[_change("scene.familiarity", 6)]))
    assert len({asked.system for asked in ask.asked}) == 1
    assert len({asked.user.split("</dialogue>")[0] for asked in ask.asked}) == 1


def test_the_order_of_annotators_in_the_settings_changes_no_verdict() -> None:
    answer = _changes_of(
        scripted_a=[_change("scene.topic", "A Broken Oven!"), _change("scene.relationship", action="reject")],
        scripted_b=[_change("scene.topic", "a broken oven!"), _change("utterance.2.text", "Hm.")],
    )
    one, _, _ = _run(answer)
    other, _, _ = _run(answer, "voting.annotators=[scripted-b, scripted-a]")
    for table in ("reviews", "votes", "verdicts"):
        assert one.made(table).equals(other.made(table)), table


def test_an_unreadable_review_is_a_missing_review_and_no_failure_of_the_dialogue() -> None:
    def answer(asked: Asked, model: Any) -> Any:
        if asked.purpose == "review" and asked.alias == "scripted-a" and "goal.goal1" in asked.inputs.labels[0]:
            raise ModelError("unreadable", "no object")
        return _changes_of()(asked, model)

    context, _, failed = _run(answer)
    assert failed == {}
    reviews = context.made("reviews").filter(annotator="scripted-a")
    assert dict(reviews.select("element", "action").iter_rows())["goal.goal1"] is None
    assert reviews["action"].null_count() == 4
    manual = context.made("verdicts").filter(outcome="manual")
    assert manual["element"].to_list() == ["goal.goal1", "goal.goal2", "goal.goal_completion", "goal.reason"]
    assert set(manual["pending"]) == {True}


def test_an_unreadable_vote_is_kept_as_null_and_counts_for_nobody() -> None:
    def answer(asked: Asked, model: Any) -> Any:
        if asked.purpose == "vote" and asked.alias != "scripted-a":
            raise ModelError("truncated", "cut off")
        return _changes_of(scripted_a=[_change("scene.familiarity", 6)])(asked, model)

    context, _, failed = _run(answer)
    assert failed == {}
    assert context.made("votes")["candidate"].null_count() == 2
    verdict = context.made("verdicts").filter(element="scene.familiarity").row(0, named=True)
    assert (verdict["outcome"], verdict["value"], verdict["votes_cast"]) == ("manual", "4", 1)


def test_a_provider_failure_fails_the_dialogue_after_every_started_request_has_ended() -> None:
    ended = []

    def answer(asked: Asked, model: Any) -> Any:
        ended.append(asked.alias)
        if asked.alias == "scripted-a":
            raise ModelError("rate_limited", "later")
        return _changes_of()(asked, model)

    context, _, failed = _run(answer)
    assert failed == {"dialogue_en_0": "rate_limited"}
    assert ended.count("scripted-b") == 4
    assert context.made("verdicts").is_empty()


def test_schema_fillers_give_a_verdict_on_every_label_in_both_languages() -> None:
    context, _, failed = _run(lambda asked, model: None, dialogues=[dialogue(0), dialogue(0, "zh")])
    assert failed == {}
    assert context.made("verdicts").height == 2 * (4 + 18 + 6 + 24)


# What of a reply cannot be used


GOOD, BAD = _change("scene.relationship", action="reject"), _change("scene.familiarity", 11)


@pytest.mark.parametrize(
    ("changes", "again"),
    [
        ([GOOD, BAD], ["scene.familiarity"]),
        ([GOOD, "no change at all"], ["scene.topic", "scene.familiarity", "scene.talkway"]),
        ([GOOD, _change("scene.mood", "sad")], ["scene.topic", "scene.familiarity", "scene.talkway"]),
    ],
)
def test_a_change_that_cannot_be_read_is_asked_for_again_with_the_labels_it_may_be_of(
    changes: list[Any], again: list[str]
) -> None:
    def answer(asked: Asked, model: Any) -> Any:
        mine = asked.purpose == "review" and asked.alias == "scripted-a"
        if mine and "scene.relationship" in " ".join(asked.inputs.labels):
            return {"changes": changes}
        return _changes_of()(asked, model)

    context, ask, failed = _run(answer)
    assert (failed, ask.count("review")) == ({}, 2 * 4 + 1)
    repeated = [a for a in ask.asked if a.purpose == "review" and a.alias == "scripted-a"][3]
    shown = [line.partition(" = ")[0] for line in repeated.inputs.labels]
    assert [path for path in shown if path in again] == again and "scene.relationship" not in shown
    reviews = context.made("reviews").filter(annotator="scripted-a")
    actions = dict(reviews.select("element", "action").iter_rows())
    assert actions["scene.relationship"] == "reject" and actions["scene.familiarity"] == "keep"
    assert reviews["action"].null_count() == 0


def test_one_vote_that_cannot_be_read_is_cast_again_alone() -> None:
    spoiled = {"left": 1}

    def answer(asked: Asked, model: Any) -> Any:
        plain = _changes_of(
            scripted_a=[_change("scene.topic", "Ovens"), _change("scene.relationship", "rivals")],
        )(asked, model)
        if asked.purpose == "vote" and asked.alias == "scripted-c" and spoiled["left"]:
            spoiled["left"] -= 1
            plain["question_2"]["candidate"] = 99
        return plain

    context, ask, failed = _run(answer)
    assert (failed, ask.count("vote")) == ({}, 3 + 1)
    again = [asked for asked in ask.asked if asked.purpose == "vote" and asked.alias == "scripted-c"][1]
    assert len(again.inputs.questions) == 1 and again.inputs.questions[0].startswith("question_1: scene.relationship")
    votes = context.made("votes").filter(voter="scripted-c")
    assert votes["candidate"].to_list() == [0, 0]
