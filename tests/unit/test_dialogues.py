"""Guards on what a writer wrote, and the requests of the dialogues stage."""

from __future__ import annotations

import asyncio
import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.dialogues.guards import GUARDS, Line, choose_speaker_names, mend
from tasks.dialogues.prompts import ANNOTATE, EPILOGUE, describe_familiarity, make_labels_reply
from tasks.dialogues.setup import draw_length
from tasks.dialogues.task import STAGE, split_turns
from tasks.dialogues.writing import DRAWS
from tasks.foundation.demo.elements import comparison_key
from tasks.foundation.errors import ConfigError, ModelError
from tasks.foundation.llm.reply import schema_of
from tests.fakes.asker import FakeAsker
from tests.unit.dialogue_rows import FakeContext, character, conflict, dialogue, prepared, worked, world

NAMES = ("Ada Keller", "Ben Ray")


def _lines(*said: tuple[int, str]) -> list[Line]:
    return [Line(speaker, text) for speaker, text in said]


def _texts(lines: tuple[Line, ...]) -> list[tuple[int, str]]:
    return [(line.speaker, line.text) for line in lines]


# Guards


def test_a_well_formed_dialogue_passes_untouched() -> None:
    lines = _lines((1, "Hello."), (2, "Hi."), (1, "Did it rain?"), (2, "All night."))
    mended = mend(lines, NAMES)
    assert (list(mended.lines), mended.guards, mended.ended) == (lines, (), False)


def test_text_beside_the_end_marker_is_kept_and_a_bare_marker_is_no_utterance() -> None:
    mended = mend(_lines((1, "Hello."), (2, "Bye then. *ENDING*"), (1, "**ENDING**")), NAMES)
    assert _texts(mended.lines) == [(1, "Hello."), (2, "Bye then.")]
    assert mended.guards == ("ending_marker", "empty_dropped")
    assert mended.ended


def test_a_marker_before_the_last_words_does_not_end_the_dialogue() -> None:
    assert not mend(_lines((1, "Hello. *ENDING*"), (2, "Wait, one thing.")), NAMES).ended
    assert not mend(_lines((1, "Hello."), (2, "*ENDING* or not?")), NAMES).ended


@pytest.mark.parametrize(
    "prefix", ["Ada Keller: ", "Ada: ", "**Ada**: ", "ada keller：", "Speaker 1: ", "Participant 1:"]
)
def test_a_name_before_the_text_is_taken_out(prefix: str) -> None:
    mended = mend(_lines((1, f"{prefix}Good morning."), (2, "Morning.")), NAMES)
    assert _texts(mended.lines) == [(1, "Good morning."), (2, "Morning.")]
    assert mended.guards == ("name_prefix",)


def test_the_name_before_the_text_says_who_speaks() -> None:
    mended = mend(_lines((2, "Ada: Good morning."), (1, "Ben: Morning.")), NAMES)
    assert _texts(mended.lines) == [(1, "Good morning."), (2, "Morning.")]
    assert mended.guards == ("name_prefix", "relabelled")


def test_a_name_within_the_text_stays() -> None:
    lines = _lines((1, "I asked Ben: no answer."), (2, "Ada, listen: wait."))
    assert list(mend(lines, NAMES).lines) == lines


def test_one_label_for_everybody_becomes_turns() -> None:
    mended = mend(_lines((1, "Hello."), (1, "Hi."), (1, "Did it rain?")), NAMES)
    assert _texts(mended.lines) == [(1, "Hello."), (2, "Hi."), (1, "Did it rain?")]
    assert mended.guards == ("relabelled",)


def test_labels_too_mixed_up_to_leave_a_dialogue_become_turns() -> None:
    # joined, the five would be two utterances; 2 is enough once and too few the other time
    said = _lines((2, "Well?"), (1, "Hello."), (1, "Hi."), (2, "So."), (2, "Yes."))
    assert _texts(mend(said, NAMES, at_least=2).lines) == [(1, "Hello. Hi."), (2, "So. Yes.")]
    mended = mend(said, NAMES, at_least=4)
    assert _texts(mended.lines) == [(1, "Well?"), (2, "Hello."), (1, "Hi."), (2, "So."), (1, "Yes.")]
    assert mended.guards == ("relabelled",)
    assert len(mend(said[:3], NAMES, at_least=4).lines) == 1


def test_two_utterances_of_one_speaker_in_a_row_become_one() -> None:
    mended = mend(_lines((1, "Hello."), (1, "Are you there?"), (2, "Yes.")), NAMES)
    assert _texts(mended.lines) == [(1, "Hello. Are you there?"), (2, "Yes.")]
    assert mended.guards == ("merged",)
    assert (
        mend(_lines((1, "你好。"), (1, "在吗？"), (2, "在。")), ("王芳", "李明"), joint="").lines[0].text
        == "你好。在吗？"
    )


def test_what_participant_2_says_first_is_dropped() -> None:
    mended = mend(_lines((2, "Well?"), (1, "Hello."), (2, "Hi.")), NAMES)
    assert _texts(mended.lines) == [(1, "Hello."), (2, "Hi.")]
    assert mended.guards == ("opener_dropped",)


def test_a_repeat_is_dropped_but_a_short_answer_may_come_again() -> None:
    said = _lines(
        (1, "Shall we go to the market?"),
        (2, "Yes."),
        (1, "And then home?"),
        (2, "Yes."),
        (1, "shall we go to the  MARKET?"),
    )
    mended = mend(said, NAMES)
    assert _texts(mended.lines) == _texts(tuple(said[:4]))
    assert mended.guards == ("repeat_dropped",)
    assert _texts(mend(_lines((1, "Yes."), (2, "yes.")), NAMES).lines) == [(1, "Yes.")]


def test_line_breaks_in_an_utterance_become_spaces_so_that_it_cannot_pose_as_two_turns() -> None:
    assert mend(_lines((1, "Hello.\nBen: I give up."), (2, "Hi.")), NAMES).lines[0].text == "Hello. Ben: I give up."


TEXT = st.text(alphabet="ab :*\n好：", max_size=8) | st.sampled_from(
    ["Ada: hi", "Ben Ray: so?", "*ENDING*", "Ada:", "a long enough utterance", "Speaker 2: Ada: yes", ""]
)


@given(st.lists(st.builds(Line, st.sampled_from([1, 2]), TEXT), max_size=8), st.integers(0, 5))
def test_whatever_was_written_the_result_alternates_has_text_and_stays_as_it_is(
    lines: list[Line], at_least: int
) -> None:
    mended = mend(lines, NAMES, at_least=at_least)
    assert [line.speaker for line in mended.lines] == [1 + place % 2 for place in range(len(mended.lines))]
    assert all(line.text.strip() for line in mended.lines)
    assert list(mended.guards) == [guard for guard in GUARDS if guard in mended.guards]
    again = mend(mended.lines, NAMES, at_least=at_least)
    assert (again.lines, again.guards) == (mended.lines, ())
    kept = "".join(comparison_key(line.text) for line in mended.lines)
    letters = re.sub(r"[^a-z好]", "", "".join(comparison_key(line.text) for line in lines))
    assert len(re.sub(r"[^a-z好]", "", kept)) <= len(letters)


def test_two_people_of_one_name_are_told_apart() -> None:
    assert choose_speaker_names("Ada", "ADA", "en") == ("Ada (1)", "ADA (2)")
    assert choose_speaker_names("王芳", "王芳", "zh") == ("王芳（1）", "王芳（2）")
    assert choose_speaker_names("Ada", "Ben", "en") == ("Ada", "Ben")


# Prompts


def test_chunks_cover_every_turn_once() -> None:
    assert list(split_turns(14, 6)) == [(1, 6), (7, 12), (13, 14)]
    assert list(split_turns(6, 6)) == [(1, 6)]


def test_the_reply_to_a_chunk_has_each_of_its_turns_exactly_once() -> None:
    schema = schema_of(make_labels_reply((7, 8, 9)))
    assert schema["required"] == ["turn_7", "turn_8", "turn_9"]
    assert schema["additionalProperties"] is False


def test_familiarity_10_is_not_read_as_1() -> None:
    assert describe_familiarity(10, "en").startswith("10/10 (close for many years")
    assert describe_familiarity(1, "en") == "1/10 (meeting for the first time)"
    assert describe_familiarity(5, "en") == "5/10 (have met a few times – know each other's background)"
    assert describe_familiarity(0, "zh") == "0/10（陌生人）"


def test_labelling_and_epilogue_share_their_system_message() -> None:
    for language in ("en", "zh"):
        assert ANNOTATE._file(language).system == EPILOGUE._file(language).system


# The stage


def _context(*overrides: str, pairings: int = 1, only: str | None = None) -> FakeContext:
    """Selected pairings, ranked backwards, and one that was not selected."""
    tables = world([dialogue(number, language) for language in ("en", "zh") for number in range(pairings)])
    tables["conflicts"] = [
        conflict(number, language, rank=2 * number + (language == "en"))
        for language in ("en", "zh")
        for number in range(pairings)
        if only in (None, language)
    ]
    tables["conflicts"].append(conflict(99, rank=None))
    inputs = {name: rows for name, rows in tables.items() if name in STAGE.reads}
    return FakeContext(inputs, "dialogues.if_unfit=keep", *overrides)  # most are in English whatever is asked for


def _written(*said: tuple[int, str]):
    turns = [{"speaker": speaker, "text": text} for speaker, text in said]
    return lambda asked, model: {"turns": turns} if asked.purpose == "write" else None


FOUR = ((1, "Hello there."), (2, "Hi, what is it?"), (1, "The oven is broken."), (2, "I sell ovens."))


def _run(context: FakeContext, answer) -> tuple[FakeAsker, dict[str, str]]:
    items = prepared(STAGE, context)
    ask = FakeAsker(answer)
    return ask, asyncio.run(worked(STAGE, context, ask, items))


def test_the_selected_pairings_are_worked_in_order_of_selection() -> None:
    assert prepared(STAGE, _context(pairings=2)) == [
        "pairing_zh_0",
        "pairing_en_0",
        "pairing_zh_1",
        "pairing_en_1",
    ]


def test_a_dialogue_takes_one_request_to_write_one_a_chunk_and_one_for_the_epilogue() -> None:
    context = _context("dialogues.utterances_per_request=3")
    ask, failed = _run(context, _written(*FOUR))
    assert failed == {}
    # per dialogue of 4 turns in chunks of 3: write, 1–3, 4, epilogue
    assert [asked.purpose for asked in ask.asked] == ["write", "annotate", "annotate", "epilogue"] * 2
    dialogues, utterances = context.made("dialogues"), context.made("utterances")
    assert dialogues["turn_count"].to_list() == [4, 4]
    assert utterances["turn_index"].to_list() == [1, 2, 3, 4] * 2
    assert utterances["text"].to_list()[:4] == [text for _, text in FOUR]
    assert dialogues["stop_reason"].to_list() == ["ended", "ended"]


def test_every_labelling_request_starts_with_the_whole_dialogue() -> None:
    ask, _ = _run(_context("dialogues.utterances_per_request=3"), _written(*FOUR))
    seen = [asked for asked in ask.asked if asked.purpose in ("annotate", "epilogue")][:3]
    assert len({asked.system for asked in seen}) == 1
    assert len({asked.user.split("</dialogue>")[0] for asked in seen}) == 1
    assert "3. 王芳0：The oven is broken." in seen[0].user


def test_the_writer_is_told_names_goals_and_relation_and_the_names_never_collide() -> None:
    context = _context()
    context._inputs["characters"] = [
        character(number, language, name="Ada") for language in ("en", "zh") for number in (0, 1)
    ]
    ask, _ = _run(context, _written(*FOUR))
    write = next(asked for asked in ask.asked if asked.purpose == "write" and "Ada (1)" in asked.user)
    for expected in ("Ada (2)", "sell a new oven", "customer and dealer", "4/10 (have met a few times)", "phone call"):
        assert expected in write.user
    assert set(context.made("dialogues")["speaker1"]) == {"Ada (1)", "Ada（1）"}


def test_what_was_mended_is_named_and_a_full_dialogue_without_an_end_stops_at_max_turns() -> None:
    said = [(1, "Ada 0: Hello there."), *FOUR[1:], (1, "How much is one?"), (2, "Not too much.")]
    context = _context("dialogues.min_turns=4", "dialogues.max_turns=6")
    _run(context, _written(*said))
    (row,) = context.made("dialogues").filter(pl.col("language") == "en").to_dicts()
    assert row["guards"] == ["name_prefix"]
    assert row["stop_reason"] == "max_turns"
    ended = _context("dialogues.min_turns=4", "dialogues.max_turns=6")
    _run(ended, _written(*said[:-1], (2, "Not too much. *ENDING*")))
    assert ended.made("dialogues").row(0, named=True)["stop_reason"] == "ended"


def test_a_text_that_cannot_be_mended_is_drawn_again_and_then_given_up() -> None:
    context = _context("dialogues.min_turns=4")
    same = _written((1, "Hello."), (2, "Hello."), (1, "Hello."), (2, "Hello."))
    ask, failed = _run(context, same)
    assert failed == {"pairing_en_0": "invalid", "pairing_zh_0": "invalid"}
    assert [asked.sample for asked in ask.asked] == list(range(DRAWS)) * 2
    assert context.made("dialogues").is_empty()


def test_a_second_draw_can_save_a_dialogue() -> None:
    def answer(asked, model):
        said = FOUR if asked.sample == 1 else FOUR[:1] * 4
        return _written(*said)(asked, model)

    context = _context("dialogues.min_turns=4")
    ask, failed = _run(context, answer)
    assert failed == {}
    assert ask.count("write") == 4


GUTEN = ((1, "Ich weiß nicht, ob der Ofen noch zu retten ist."), (2, "Das kann ich leider auch nicht sagen."))


@pytest.mark.parametrize(
    ("bad", "guard"),
    [
        (GUTEN, "wrong_language"),
        (((1, "As an AI, I have no oven."), (2, "I see.")), "ai_voice"),
        (((1, "I cannot assist with that request."), (2, "I see.")), "refusal"),
        (((1, "The oven is cold. Ada 1: How cold?"), (2, "Very.")), "name_inside"),
        (((1, "<goals> The oven is cold."), (2, "Very.")), "prompt_echo"),
    ],
)
def test_words_that_no_person_says_are_drawn_again_and_named(bad: tuple[tuple[int, str], ...], guard: str) -> None:
    def answer(asked, model):
        return _written(*(bad if asked.sample == 0 else FOUR[:2]), *FOUR[2:])(asked, model)

    context = _context("dialogues.if_unfit=redraw", only="en")
    ask, failed = _run(context, answer)
    assert (failed, ask.count("write")) == ({}, 2)
    (row,) = context.made("dialogues").to_dicts()
    assert row["guards"] == [guard]
    assert context.made("utterances")["text"].to_list() == [text for _, text in FOUR]


ALL_GERMAN = _written(*GUTEN, (1, "Dann kaufe ich eben einen neuen Ofen."), (2, "Das ist wohl das Beste für alle."))


def test_where_every_draw_is_unfit_the_row_fails() -> None:
    ask, failed = _run(_context("dialogues.if_unfit=redraw", only="en"), ALL_GERMAN)
    assert (ask.count("write"), failed) == (DRAWS, {"pairing_en_0": "invalid"})


def test_what_is_to_be_kept_is_not_drawn_again_but_named() -> None:
    context = _context("dialogues.if_unfit=keep", only="en")
    ask, failed = _run(context, ALL_GERMAN)
    assert (ask.count("write"), failed) == (1, {})
    assert context.made("dialogues")["guards"].to_list() == [["wrong_language"]]


def test_an_utterance_that_grows_too_long_by_merging_is_refused_not_cut() -> None:
    # four utterances of speaker 1 in a row, 400 characters each, give one of 1,603
    long = [(1, letter * 400) for letter in "abcd"]
    context = _context("dialogues.min_turns=2", "dialogues.max_turns=8")
    _, failed = _run(context, _written(*long, (2, "Oh."), (1, "Yes."), (2, "Fine.")))
    assert set(failed.values()) == {"invalid"}


def test_a_provider_failure_reaches_the_run() -> None:
    def answer(asked, model):
        if asked.purpose == "epilogue":
            raise ModelError("timeout", "too slow")
        return _written(*FOUR)(asked, model)

    _, failed = _run(_context(), answer)
    assert set(failed.values()) == {"timeout"}


def test_chinese_and_oddly_spelled_emotions_are_stored_under_their_name() -> None:
    labels = {
        "intent": "i",
        "sentiment": "Neutral",
        "emotion": "愤怒",
        "stance": [],
        "strategy": {"description": "d", "type": "t"},
    }

    def answer(asked, model):
        if asked.purpose == "annotate":
            turns = (1, 2, 3, 4)
            return {f"turn_{turn}": labels | {"emotion": "fear"} if turn == 2 else labels for turn in turns}
        return _written(*FOUR)(asked, model)

    context = _context()
    _run(context, answer)
    assert context.made("utterances")["emotion"].to_list()[:3] == ["Anger", "Fear", "Anger"]


# What of a reply cannot be used


LABELS = {
    "intent": "i",
    "sentiment": "Neutral",
    "emotion": "Joy",
    "stance": [],
    "strategy": {"description": "d", "type": "t"},
}
LONG = [(1 + place % 2, f"Line {place} of a long talk.") for place in range(26)]


def _annotated(spoil, said=LONG):
    """Labels for what is asked, those of `spoil` by turn put in their place once."""
    left = dict(spoil)

    def answer(asked, model):
        if asked.purpose != "annotate":
            return _written(*said)(asked, model)
        return {name: left.pop(name) if name in left else LABELS for name in model.model_fields}

    return answer


OF_26 = ("dialogues.max_turns=26", "dialogues.utterances_per_request=26")


@pytest.mark.parametrize("spoiled", [{**LABELS, "sentiment": "Mixed"}, {"intent": "i"}, "no labels at all"])
def test_one_spoiled_turn_of_26_costs_one_small_request_and_no_other_label(spoiled: object) -> None:
    context = _context(*OF_26)
    ask, failed = _run(context, _annotated({"turn_17": spoiled}))
    assert failed == {}
    annotated = [asked for asked in ask.asked if asked.purpose == "annotate"]
    # one for each of two dialogues, and one for the turn that was spoiled
    assert [len(asked.request.reply.model_fields) for asked in annotated] == [26, 1, 26]
    assert "标注第17次发言" in annotated[1].user and "标注第1至26次发言" in annotated[0].user
    assert "Label utterances 1 to 26," in annotated[2].user
    assert context.made("utterances")["intent"].to_list() == ["i"] * 52


def test_a_turn_that_stays_spoiled_fails_its_dialogue_and_no_other() -> None:
    def answer(asked, model):
        if asked.purpose != "annotate" or "王芳" in asked.user:
            return _annotated({})(asked, model)
        return {name: "spoiled" if name == "turn_3" else LABELS for name in model.model_fields}

    ask, failed = _run(_context(*OF_26), answer)
    assert failed == {"pairing_en_0": "invalid"}
    assert ask.count("annotate") == 3


FIT, TOO_LONG = "x" * 600, "x" * 601


@pytest.mark.parametrize("text", [TOO_LONG, "", "   "])
def test_an_utterance_without_words_or_far_too_long_is_written_again_alone(text: str) -> None:
    said = [*FOUR[:2], (1, text), FOUR[3]]

    def answer(asked, model):
        if asked.purpose == "rewrite":
            assert (asked.inputs.turn == 3 and "3. Ada 0: …" in asked.user) or "王芳" in asked.user
            assert "…" in asked.user and "400" in asked.system
            return {"text": "Shorter now."}
        return _written(*said)(asked, model)

    context = _context()
    ask, failed = _run(context, answer)
    assert (failed, ask.count("write"), ask.count("rewrite")) == ({}, 2, 2)
    assert context.made("utterances")["text"].to_list()[2] == "Shorter now."


def test_an_utterance_up_to_half_over_its_limit_stays_as_it_is() -> None:
    context = _context()
    ask, failed = _run(context, _written(*FOUR[:2], (1, FIT), FOUR[3]))
    assert (failed, ask.count("rewrite")) == ({}, 0)
    assert context.made("utterances")["text"].to_list()[2] == FIT


# Length


@given(st.integers(2, 20), st.integers(0, 30), st.floats(0, 1), st.integers(0, 2**40))
def test_a_length_is_drawn_within_the_bounds(shortest: int, more: int, share: float, seed: int) -> None:
    assert shortest <= draw_length(shortest, shortest + more, shortest + share * more, seed) <= shortest + more


def test_lengths_have_the_mean_that_is_set_and_reach_the_longest() -> None:
    drawn = [draw_length(10, 26, 18.3, seed) for seed in range(4000)]
    # beta-binomial of 16 trials with a spread of 8: variance 16 p q (8 + 16) / (8 + 1), p = 8.3 / 16
    assert abs(sum(drawn) / 4000 - 18.3) < 4 * 3.27 / 4000**0.5
    assert max(drawn) == 26
    assert {draw_length(10, 26, bound, seed) for bound in (10, 26) for seed in range(9)} == {10, 26}


@pytest.mark.parametrize(("target", "said"), [("null", "in 4 to 12 utterances"), ("9.5", "about {} utterances, 4")])
def test_the_writer_is_told_the_length_drawn_for_its_dialogue_and_one_that_misses_it_is_kept(
    target: str, said: str
) -> None:
    tables = world([dialogue(number, language) for language in ("en", "zh") for number in range(6)])
    bounds = ("dialogues.min_turns=4", "dialogues.max_turns=12")
    context = FakeContext(tables, *bounds, f"dialogues.target_turns={target}")
    turns = [{"speaker": 1 + place % 2, "text": f"What {place} is about."} for place in range(5)]
    ask = FakeAsker(lambda asked, model: {"turns": turns} if asked.purpose == "write" else None)
    assert asyncio.run(worked(STAGE, context, ask, prepared(STAGE, context))) == {}
    written = {row["dialogue_id"]: row for row in context.made("dialogues").to_dicts()}
    assert {row["turn_count"] for row in written.values()} == {5}
    targets = [row["target_turns"] for row in written.values()]
    assert targets == [None] * 12 if target == "null" else len(set(targets)) > 1
    for asked in (asked for asked in ask.asked if asked.purpose == "write" and asked.user.isascii()):
        assert said.format(asked.inputs.target_turns) in asked.user


def test_a_mean_beyond_the_bounds_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"target_turns \(30\) is the mean of lengths from min_turns \(4\)"):
        FakeContext({}, "dialogues.target_turns=30")


# Turn by turn


TURNS = ("dialogues.style=turns", "dialogues.if_unfit=redraw", "dialogues.min_turns=4", "dialogues.max_turns=6")
TALK = ("Hello there.", "Hi, what is it?", "The oven is broken again.", "I sell ovens, you know.", "Do you? How much?")


def _spoken(*texts: str | tuple[str, ...]):
    """Of each utterance one text, or several for its draws."""

    def answer(asked, model):
        if asked.purpose != "speak":
            return None
        draws = texts[asked.inputs.turn - 1]
        return {"text": draws if isinstance(draws, str) else draws[asked.sample]}

    return answer


def test_each_side_is_asked_with_its_own_view_and_may_end_from_min_turns_on() -> None:
    context = _context(*TURNS, only="en")
    ask, failed = _run(context, _spoken(*TALK[:4], f"{TALK[4]} *ENDING*"))
    assert failed == {}
    spoke = [asked for asked in ask.asked if asked.purpose == "speak"]
    assert [asked.inputs.name for asked in spoke] == ["Ada 0", "Ada 1", "Ada 0", "Ada 1", "Ada 0"]
    assert [asked.inputs.may_end for asked in spoke] == [False, False, False, True, True]
    for place, asked in enumerate(spoke):
        shown = asked.system + asked.user
        assert ("oven can be mended" in shown, "sell a new oven" in shown) == (place % 2 == 0, place % 2 == 1)
        assert all(text in asked.user for text in TALK[:place]) and TALK[place] not in asked.user
    (row,) = context.made("dialogues").to_dicts()
    assert (row["turn_count"], row["stop_reason"], row["guards"]) == (5, "ended", [])
    assert context.made("utterances")["text"].to_list() == list(TALK)
    assert context.made("utterances")["speaker"].to_list() == [1, 2, 1, 2, 1]


@pytest.mark.parametrize(("familiarity", "knows"), [(3, False), (4, True), (10, True)])
def test_a_writing_side_knows_the_others_background_from_familiarity_4_on(familiarity: int, knows: bool) -> None:
    context = _context(*TURNS, only="en")
    known = [row.model_copy(update={"familiarity": familiarity}) for row in context._inputs["conflicts"]]
    context._inputs["conflicts"] = known
    ask, _ = _run(context, _spoken(*TALK, "*ENDING*"))
    assert {bool(asked.inputs.partner_background) for asked in ask.asked if asked.purpose == "speak"} == {knows}


def test_a_talk_is_not_over_before_its_time_and_stops_at_max_turns() -> None:
    context = _context(*TURNS, only="en")
    said = (TALK[0], f"{TALK[1]} *ENDING*", ("*ENDING*", TALK[2]), *TALK[3:], "Too much for me.")
    ask, failed = _run(context, _spoken(*said))
    assert (failed, ask.count("speak")) == ({}, 7)
    (row,) = context.made("dialogues").to_dicts()
    assert (row["turn_count"], row["stop_reason"]) == (6, "max_turns")
    assert row["guards"] == ["ending_marker", "empty_dropped"]


def test_an_utterance_is_mended_or_drawn_again_alone() -> None:
    context = _context(*TURNS, only="en")
    said = (
        "*waves* Hello there.",
        ("As an AI, I cannot say.", "Ada 1: Hi, what is it?"),
        TALK[2],
        ("The oven is broken again!", TALK[3]),
        f"{TALK[4]} *ENDING*",
    )
    ask, failed = _run(context, _spoken(*said))
    assert (failed, ask.count("speak")) == ({}, 7)
    assert context.made("utterances")["text"].to_list() == list(TALK)
    (row,) = context.made("dialogues").to_dicts()
    assert row["guards"] == ["stage_direction", "name_prefix", "repeat_dropped", "ai_voice"]


def test_an_utterance_that_stays_unfit_fails_its_dialogue() -> None:
    refusals = ("I cannot assist with that.",) * DRAWS
    ask, failed = _run(_context(*TURNS, only="en"), _spoken(TALK[0], refusals))
    assert (failed, ask.count("speak")) == ({"pairing_en_0": "invalid"}, 1 + DRAWS)


def test_a_side_is_told_the_length_drawn_for_the_talk() -> None:
    context = _context(*TURNS, "dialogues.target_turns=5", only="en")
    ask, _ = _run(context, _spoken(*TALK, "*ENDING*"))
    (target,) = set(context.made("dialogues")["target_turns"])
    assert all(f"about {target} utterances" in asked.user for asked in ask.asked if asked.purpose == "speak")
