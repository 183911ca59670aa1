"""Algorithm 1 over literal events; whose fault is whose; the family rule. Nothing here asks a model."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.conversation.families import Party, check_families, find_clashes
from tasks.conversation.faults import explain_failed_answer, explain_failed_user_turn, explain_lost_prediction
from tasks.conversation.labels import Gold, Progress, find_progress
from tasks.conversation.loop import (
    ConversationState,
    Ended,
    Event,
    Fault,
    Prediction,
    TargetAnswer,
    UserTurn,
    begin,
    step,
)
from tasks.conversation.role_breaks import USER_NAMES, clean_user_text, find_trouble
from tasks.conversation.stopping import find_stop_reason
from tasks.foundation.errors import FAILURE_KINDS, ConfigError, ModelError
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.texts.spoken import Voice

GOLD = Gold("Planning", "Curiosity", "Hope")


def says(text: str, progress: Progress = "in_progress") -> UserTurn:
    return UserTurn(text, GOLD, progress)


def talk_of(*progress: Progress, max_turns: int = 10) -> ConversationState:
    """The conversation in which the simulator reports `progress` one after another, as far as it gets."""
    talk = begin(says("turn 1", "not_started"))
    for number, one in enumerate(progress, start=2):
        for event in (Prediction(), TargetAnswer(f"answer {number - 1}"), says(f"turn {number}", one)):
            if talk.wants is not None:
                talk = step(talk, event, max_turns)
    return talk


# -- the stop rule


def test_two_achieved_in_a_row_end_the_conversation_and_the_second_is_not_answered() -> None:
    talk = talk_of("in_progress", "achieved", "achieved", "in_progress")
    # turns 1 to 3 are answered; turn 4 is the second achieved
    assert talk.answered == len(talk.turns) == 3
    assert talk.ended == Ended("achieved", "none", says("turn 4", "achieved"))


def test_achieved_that_is_taken_back_does_not_count_towards_the_two() -> None:
    talk = talk_of("achieved", "in_progress", "achieved", "in_progress")
    assert talk.ended is None and talk.answered == 4 and talk.wants == "prediction"


def test_the_budget_of_turns_ends_the_conversation_after_its_last_answer() -> None:
    talk = talk_of("in_progress", "in_progress", "in_progress", max_turns=3)
    # Algorithm 1, line 7: the simulator also speaks after answer 3
    assert talk.answered == 3
    assert talk.ended == Ended("max_turns", "none", says("turn 4", "in_progress"))


def test_a_goal_achieved_at_the_last_moment_is_achieved() -> None:
    assert talk_of("achieved", "achieved", max_turns=2).ended == Ended("achieved", "none", says("turn 3", "achieved"))


def test_the_shortest_achieved_conversation_has_two_answered_turns() -> None:
    assert talk_of("achieved", "achieved").answered == 2


def test_one_achieved_at_a_budget_of_one_turn_is_the_budgets_end() -> None:
    assert find_stop_reason(["not_started", "achieved"], answered=1, max_turns=1) == "max_turns"


@given(
    st.lists(st.sampled_from(["not_started", "in_progress", "achieved"]), min_size=12, max_size=12), st.integers(1, 10)
)
def test_every_conversation_ends_by_its_budget_and_no_pair_of_achieved_is_passed_over(
    progress: list[Progress], max_turns: int
) -> None:
    talk = talk_of(*progress, max_turns=max_turns)
    assert talk.ended is not None and 1 <= talk.answered <= max_turns
    said = [turn.user.progress for turn in talk.turns]
    assert ("achieved", "achieved") not in list(pairwise(said))


# -- faults within the loop


def test_a_targets_fault_keeps_the_turn_and_stops() -> None:
    talk = talk_of("in_progress")
    for event in (Prediction(emotion="Joy"), Fault("target", "empty")):
        talk = step(talk, event, 10)
    assert talk.ended == Ended("fault", "target") and talk.answered == 1
    assert [(turn.prediction, turn.answer) for turn in talk.turns] == [
        (Prediction(), "answer 1"),
        (Prediction(emotion="Joy"), None),
    ]


def test_a_simulators_fault_keeps_what_was_said() -> None:
    talk = begin(says("turn 1", "not_started"))
    for event in (Prediction(), TargetAnswer("answer 1"), Fault("simulator", "labels")):
        talk = step(talk, event, 10)
    assert talk.ended == Ended("fault", "simulator") and [turn.answer for turn in talk.turns] == ["answer 1"]


@pytest.mark.parametrize(
    ("before", "event"),
    [
        ([], TargetAnswer("too early")),
        ([], says("out of turn")),
        ([], Fault("target", "a prediction that fails is no fault")),
        ([Prediction()], Prediction()),
        ([Prediction()], Fault("simulator", "it is not its turn")),
        ([Prediction(), TargetAnswer("a")], Fault("target", "it is not its turn")),
        ([Prediction(), TargetAnswer("a")], TargetAnswer("twice")),
        ([Prediction(), Fault("target", "over")], TargetAnswer("after the end")),
    ],
)
def test_an_event_out_of_turn_is_a_bug_and_said_so(before: list[Event], event: Event) -> None:
    talk = begin(says("turn 1"))
    for one in before:
        talk = step(talk, one, 10)
    with pytest.raises(ValueError, match="the conversation wants"):
        step(talk, event, 10)


# -- whose fault a failed request is

PASSING = {"rate_limited", "timeout", "connection", "server", "budget"}


@pytest.mark.parametrize("kind", FAILURE_KINDS)
def test_every_kind_of_failure_has_one_owner(kind: str) -> None:
    error = ModelError(kind, "said so")  # type: ignore[arg-type]
    assert explain_lost_prediction(error) == Prediction(lost=kind if kind in PASSING else None)
    if kind in PASSING or kind == "refused":
        with pytest.raises(ModelError):
            explain_failed_answer(error)
    else:
        assert explain_failed_answer(error) == Fault("target", f"{kind}: said so")
    if kind in PASSING:
        with pytest.raises(ModelError):
            explain_failed_user_turn(error)
    else:
        assert explain_failed_user_turn(error) == Fault("simulator", f"{kind}: said so")


# -- labels


@pytest.mark.parametrize("name", ["explicit_intent", "latent_intent", "user_emotion"])
def test_every_label_is_read_in_both_languages_and_in_another_case(name: str) -> None:
    for label in taxonomy(name).labels:
        spellings = (label.name, label.name.upper(), label.name.replace(" ", "_"), label.zh)
        assert {taxonomy(name).find(spelling) for spelling in spellings} == {label.name}


@pytest.mark.parametrize("said", ["", "Advice", "Seeking Advice, Venting", "not Seeking Advice", "Hope"])
def test_what_is_no_label_is_none_even_when_a_label_stands_in_it(said: str) -> None:
    assert taxonomy("explicit_intent").find(said) is None


def test_progress_is_read_as_strictly() -> None:
    assert find_progress("Not started") == "not_started"
    assert find_progress("not achieved") is None


# -- what a user turn must not be

ANSWER = "You could write her a short letter first, and call her when she has read it."


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("", "empty"),
        ("… !?", "empty"),
        ("👍", None),
        ("好", None),
        ("How can I help you today?", "role"),
        ("I’m an AI language model, so I have no sister.", "role"),
        ("As an AI language model, I cannot say.", "role"),
        ("As an AI, you cannot say that.", None),
        ("Tell me where you live, and I will do my best to assist you.", "role"),
        ("The user wants more about the workshop.", "role"),
        ("用户想要知道作坊的事。", "role"),
        ("The person who wants the workshop is my sister.", None),
        ("I'm here to help my sister.", None),
        ("Fine.\nAssistant: Glad to hear it!", "role"),
        ("作为一个人工智能助手，我无法回答。", "role"),
        ("请问有什么可以帮您的吗？", "role"),
        ("你作为人工智能，懂什么？", None),
        (ANSWER, "role"),
        ("write her a short letter first, and call her when", "role"),
        (f"Okay. {ANSWER}", "role"),
        (f"'{ANSWER}' That is what you said, and I tried just that, but she never opens anything I send.", None),
        (f"What else? {ANSWER[:60]}", "role"),
        ("Call her?", None),
        ("Well, my sister called again about the workshop.", "repeat"),
        ("My sister called again about the workshop. I did not answer, I just sat there and looked at it.", None),
        ("My sister called again about the workshop.", "repeat"),
        ("MY SISTER  called again about the workshop.", "repeat"),
        ("Yes.", None),
        ("我妹妹又打电话来说作坊的事。", "repeat"),
    ],
)
def test_only_plain_breaks_of_the_role_are_caught(text: str, trouble: str | None) -> None:
    said = ["My sister called again about the workshop.", "Yes.", "我妹妹又打电话来说作坊的事。"]
    assert (
        find_trouble(text, Voice("en" if text.isascii() or "’" in text else "zh"), said, [ANSWER, "Yes."])[0] == trouble
    )


def test_the_speakers_own_name_is_no_part_of_what_is_said() -> None:
    voice = Voice("en", USER_NAMES)
    assert {clean_user_text(f"{name} I called her.", voice)[0] for name in ("User:", "用户：")} == {"I called her."}
    assert clean_user_text("*sighs* Fine.", voice) == ("Fine.", ("stage_direction",))
    assert clean_user_text("I told the user: stop.", voice) == ("I told the user: stop.", ())


def test_another_language_and_a_recited_goal_are_troubles_of_their_own() -> None:
    goal = "The user wants a plan for telling her sister that she will not sell."
    assert find_trouble("我妹妹又打电话来了。", Voice("en"), [], []) == ("language", ("wrong_language",))
    assert find_trouble(f"You know: {goal}", Voice("en", told=(goal,)), [], []) == ("echo", ("prompt_echo",))
    assert find_trouble("I cannot assist with that.", Voice("en"), [], []) == ("role", ("refusal",))


# -- the family rule


def party(role: str, alias: str, family: str) -> Party:
    return Party(role, alias, family)  # type: ignore[arg-type]


def test_two_targets_or_two_judges_may_share_a_family() -> None:
    parties = [
        party("simulator", "s", "gemini"),
        *(party("target", alias, "qwen") for alias in ("q27", "q397")),
        *(party("judge", alias, "gpt") for alias in ("g1", "g2")),
    ]
    assert find_clashes(parties) == []
    check_families(parties, None)


def test_a_family_in_two_roles_names_every_alias_and_the_way_out() -> None:
    parties = [party("simulator", "s", "gemini"), party("target", "t", "qwen"), party("target", "u", "gemini")]
    parties.append(party("judge", "j", "gemini"))
    with pytest.raises(ConfigError) as found:
        check_families(parties, None)
    message = str(found.value)
    assert "simulator 's' and target 'u' are both of family 'gemini'" in message
    assert "simulator 's' and judge 'j'" in message and "target 'u' and judge 'j'" in message
    assert "'t'" not in message and "conversation.family_waiver=" in message
    check_families(parties, "the paper's own choice")
