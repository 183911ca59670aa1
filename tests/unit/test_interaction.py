"""The interaction stage: what counts as said, who speaks when, who sees what, whose fault it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.demo.speaking import ExtractedUtterance, extract_utterance
from tasks.foundation.errors import ModelError
from tasks.foundation.llm.request import ProviderCall, RawReply, Usage
from tasks.foundation.settings import load_settings
from tasks.interaction.play import PlayedEpisode, SpokenTurn, play
from tasks.interaction.prompts import SPEAK, make_speak_inputs
from tasks.interaction.task import STAGE
from tasks.interaction.utterance import recover_words
from tests.unit.evaluation_build import Bench, Models, episode, texts, use

LIMITS = load_settings("test").text_limits
NAMES = ("Ada Keller", "Ben Ruiz")


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    models = Models()
    use(models, monkeypatch)
    return models


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# What a side says


@pytest.mark.parametrize(
    ("written", "text", "ends"),
    [
        ("Good morning.", "Good morning.", False),
        ("Ada Keller: Good morning.", "Good morning.", False),
        ("**Ada:** Good morning.", "Good morning.", False),
        ("[Ada Keller]：你好。", "你好。", False),
        ("Bye then. *ENDING*", "Bye then.", True),
        ("*ENDING* Bye then.", "Bye then.", True),
        ("Bye **ENDING** then.", "Bye then.", True),
        ("*ENDING*", "", True),
        ("再见。*结束*", "再见。", True),
        ("See you. [ending]", "See you.", True),
        ("See you. *The End*", "See you.", True),
        ("I like a happy *ending* in films.", "I like a happy *ending* in films.", False),
        ("It must *end* here, I fear.", "It must *end* here, I fear.", False),
        ("I am pending.", "I am pending.", False),
        ("One.\n\nTwo.", "One. Two.", False),
        ("I could come.\nBen Ruiz: Good!\nAda: Great. *ENDING*", "I could come.", False),
        ("Ben: I could come.", "I could come.", False),
        ("Ada: One.\nAda: Two.", "One. Two.", False),
        ("Remember: at nine.", "Remember: at nine.", False),
        ("Benefit: none.", "Benefit: none.", False),
    ],
)
def test_names_markers_and_borrowed_lines_are_no_part_of_what_is_said(written: str, text: str, ends: bool) -> None:
    assert extract_utterance(written, *NAMES) == ExtractedUtterance(text, ends)


@given(st.text(max_size=80))
def test_an_utterance_is_one_line_whatever_was_written(written: str) -> None:
    found = extract_utterance(written, *NAMES)
    assert len(found.text.splitlines()) <= 1 and found.text == found.text.strip()


def test_only_words_of_a_side_stand_in_for_a_reply_that_is_not_as_asked() -> None:
    assert recover_words(ModelError("refused", "no", text="I will not.")) == "I will not."
    assert recover_words(ModelError("unreadable", "no JSON", text="<think>hm</think> Good morning.")) == "Good morning."
    assert recover_words(ModelError("unreadable", "broken", text='{"content": "Go')) is None
    assert recover_words(ModelError("unreadable", "empty", text="")) is None
    assert recover_words(ModelError("truncated", "cut", text='{"goal": "mor')) is None
    assert recover_words(ModelError("content_filter", "withheld", text="Good")) is None
    assert recover_words(ModelError("context_overflow", "full")) is None


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Good mor", "Good mor"),
        ('{"content": "Good mor', "Good mor"),
        ('```json\n{ "content" : "Two\\nlines and a \\"quote', 'Two\nlines and a "quote'),
        ('{"content": "half an escape \\u4e', "half an escape "),
        ('{"content": "a backslash \\', "a backslash "),
        ('<think>long thoughts</think>{"content": "after them', "after them"),
    ],
)
def test_what_the_tokens_did_not_last_for_is_heard_as_far_as_it_goes(written: str, said: str) -> None:
    assert recover_words(ModelError("truncated", "cut", text=written)) == said


# The play


def _play(script: Sequence[str | Exception], max_turns: int = 21) -> tuple[PlayedEpisode, list[int]]:
    waiting, asked = list(script), []

    async def speak(speaker: int, turns: tuple[SpokenTurn, ...]) -> str:
        asked.append(speaker)
        said = waiting.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    return asyncio.run(play(NAMES, max_turns, speak)), asked


def test_speaker_one_has_the_odd_turns_and_twenty_one_utterances_are_the_most() -> None:
    played, asked = _play([f"Line {turn}." for turn in range(30)])
    assert asked == [1, 2] * 10 + [1]
    assert played.stop_reason == "max_turns" and len(played.turns) == 21
    assert [said.speaker for said in played.turns] == asked


def test_text_beside_the_marker_is_the_last_utterance() -> None:
    played, asked = _play(["Hello.", "Hi and bye. *ENDING*"])
    assert played == PlayedEpisode((SpokenTurn(1, "Hello."), SpokenTurn(2, "Hi and bye.")), "ended")
    assert asked == [1, 2]


def test_a_bare_marker_is_not_stored() -> None:
    played, _ = _play(["Hello.", "*ENDING*"])
    assert played == PlayedEpisode((SpokenTurn(1, "Hello."),), "ended")


def test_a_talk_that_ends_before_it_begins_is_the_openers_fault() -> None:
    assert _play(["*ENDING*"])[0] == PlayedEpisode((), "fault", 1)


def test_a_marker_on_the_last_turn_is_an_end() -> None:
    assert _play(["One.", "Two. *ENDING*"], max_turns=2)[0].stop_reason == "ended"


@pytest.mark.parametrize("kind", ["unreadable", "truncated", "content_filter", "context_overflow", "invalid"])
def test_a_lasting_failure_is_the_fault_of_the_side_and_what_was_said_is_kept(kind: Any) -> None:
    played, _ = _play(["Hello.", ModelError(kind, "no")])
    assert played == PlayedEpisode((SpokenTurn(1, "Hello."),), "fault", 2)


def test_a_name_alone_says_nothing() -> None:
    assert _play(["Hello.", "Ben:"])[0] == PlayedEpisode((SpokenTurn(1, "Hello."),), "fault", 2)


@pytest.mark.parametrize("error", [ModelError("timeout", "slow"), ModelError("refused", "HTTP 400")])
def test_what_is_no_sides_fault_is_raised(error: ModelError) -> None:
    with pytest.raises(ModelError):
        _play(["Hello.", error])


def test_a_refusal_in_words_is_said() -> None:
    played, _ = _play(["Hello.", ModelError("refused", "no", text="I cannot say that."), "Oh. *ENDING*"])
    assert [said.text for said in played.turns] == ["Hello.", "I cannot say that.", "Oh."]


# Who sees what


@pytest.mark.parametrize(("familiarity", "knows"), [(0, False), (3, False), (4, True), (10, True)])
def test_the_partners_background_is_shown_from_familiarity_four_and_ten_is_not_one(
    familiarity: int, knows: bool
) -> None:
    shown = _shown(familiarity, speaker=1)
    assert ("dealer in ovens" in shown) == knows
    assert "baker" in shown


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("speaker", [1, 2])
def test_the_partners_goal_is_never_shown(language: str, speaker: int) -> None:
    shown = _shown(10, speaker, language)
    own, other = ("old oven mended", "sell a new oven") if speaker == 1 else ("sell a new oven", "old oven mended")
    assert own in shown and other not in shown


def _shown(familiarity: int, speaker: int, language: str = "en") -> str:
    inputs = make_speak_inputs(episode(familiarity=familiarity, language=language), speaker, "Ada Keller: Hello.", 2)
    return "\n".join(message.content for message in SPEAK.render(language, inputs, LIMITS))


def test_a_side_reads_the_same_instructions_all_along() -> None:
    first, later = (make_speak_inputs(episode(), 1, talk, turn) for talk, turn in (("", 1), ("Ada Keller: Hi.", 3)))
    assert SPEAK.render("en", first, LIMITS)[0] == SPEAK.render("en", later, LIMITS)[0]


# The stage


def _says(*lines: str) -> Any:
    """Replies in order of the turns, whichever model is asked."""

    def answer(call: ProviderCall) -> str:
        turn = next(number for number in range(1, 30) if f"This is turn {number}" in texts(call))
        return json.dumps({"content": lines[min(turn, len(lines)) - 1]})

    return answer


async def test_in_self_play_one_target_speaks_both_sides(models: Models, bench: Bench) -> None:
    await bench.give("curation", {"interaction_episodes": [episode()]})
    models.answer = _says("Can you mend it?", "Ben Ruiz: A new one is better.", "Fine. *ENDING*")
    commit = await bench.run(STAGE, "scripted-c")
    assert commit is not None and commit.accounting.n_produced == 1
    assert len(models.calls) == 3, "one request an utterance"
    assert {call.model.alias for call in models.calls} == {"scripted-c"}
    assert {call.temperature for call in models.calls} == {1.0}
    (row,) = bench.rows("select * from interactions")
    assert (row["target"], row["partner"], row["turn_count"]) == ("scripted-c", "scripted-c", 3)
    assert (row["stop_reason"], row["fault"]) == ("ended", "none")
    turns = bench.rows("select turn_index, speaker, text, guards from interaction_turns order by turn_index")
    assert [tuple(turn.values()) for turn in turns] == [
        (1, 1, "Can you mend it?", []),
        (2, 2, "A new one is better.", ["name_prefix"]),
        (3, 1, "Fine.", []),
    ]
    assert "Ben Ruiz: A new one is better." in texts(models.calls[2])


async def test_with_a_partner_the_target_opens(models: Models, bench: Bench) -> None:
    await bench.give("curation", {"interaction_episodes": [episode()]})
    models.answer = _says("One.", "Two.", "Three.", "Four. *ENDING*")
    await bench.run(STAGE, "scripted-c", "interaction.partner=scripted-b")
    assert [call.model.alias for call in models.calls] == ["scripted-c", "scripted-b", "scripted-c", "scripted-b"]
    (row,) = bench.rows("select target, partner from interactions")
    assert row == {"target": "scripted-c", "partner": "scripted-b"}


@pytest.mark.parametrize(("failing_turn", "fault", "kept"), [(3, "target", 2), (2, "partner", 1)])
async def test_the_side_that_stays_empty_is_at_fault(
    models: Models, bench: Bench, failing_turn: int, fault: str, kept: int
) -> None:
    await bench.give("curation", {"interaction_episodes": [episode()]})
    lines = ["One.", "Two.", "Three.", "Four."]
    lines[failing_turn - 1] = ""
    models.answer = _says(*lines)
    commit = await bench.run(STAGE, "scripted-c", "interaction.partner=scripted-b")
    assert commit is not None and commit.accounting.n_produced == 1 and not commit.partial
    assert len(models.calls) == kept + 3, "the empty reply is asked for again twice"
    (row,) = bench.rows("select stop_reason, fault, turn_count from interactions")
    assert row == {"stop_reason": "fault", "fault": fault, "turn_count": kept}


async def test_an_episode_lost_to_the_provider_goes_on_where_it_broke_off(models: Models, bench: Bench) -> None:
    await bench.give("curation", {"interaction_episodes": [episode()]})
    said = _says("One.", "Two.", "Three. *ENDING*")
    models.answer = lambda call: ModelError("server", "500") if "This is turn 3" in texts(call) else said(call)
    commit = await bench.run(STAGE, "scripted-c", "interaction.max_failure_rate=1")
    assert commit is not None and commit.partial and commit.rows("interactions") == 0
    models.calls.clear()
    models.answer = said
    commit = await bench.run(STAGE, "scripted-c", "interaction.max_failure_rate=1")
    assert commit is not None and not commit.partial and commit.rows("interaction_turns") == 3
    assert len(models.calls) == 1, "turns 1 and 2 come from the cache"


async def test_a_model_that_answers_in_plain_words_has_spoken(models: Models, bench: Bench) -> None:
    await bench.give("curation", {"interaction_episodes": [episode()]})
    models.answer = lambda call: "Good morning! *ENDING*"
    await bench.run(STAGE, "scripted-c")
    assert bench.rows("select text from interaction_turns") == [{"text": "Good morning!"}]


async def test_a_side_may_say_as_much_as_its_tokens_allow_and_is_heard_when_they_end(
    models: Models, bench: Bench
) -> None:
    await bench.give("curation", {"interaction_episodes": [episode()]})
    long = "word " * 800
    models.answer = lambda call: (
        json.dumps({"content": f"{long}*ENDING*"})
        if "This is turn 2" in texts(call)
        else RawReply('{"content": "I would', Usage(), "length")
    )
    await bench.run(STAGE, "scripted-c")
    assert bench.rows("select stop_reason, fault from interactions") == [{"stop_reason": "ended", "fault": "none"}]
    said = [row["text"] for row in bench.rows("select text from interaction_turns order by turn_index")]
    assert said == ["I would", long.strip()]


async def test_a_filtered_reply_is_the_targets_fault_and_samples_are_episodes_of_their_own(
    models: Models, bench: Bench
) -> None:
    await bench.give("curation", {"interaction_episodes": [episode(1), episode(2, language="zh")]})
    models.answer = lambda call: RawReply("", Usage(), "content_filter")
    await bench.run(STAGE, "scripted-c", "interaction.samples=2")
    rows = bench.rows("select episode_id, sample, fault, turn_count from interactions order by episode_id, sample")
    assert [tuple(row.values()) for row in rows] == [
        ("episode_1", 0, "target", 0),
        ("episode_1", 1, "target", 0),
        ("episode_2", 0, "target", 0),
        ("episode_2", 1, "target", 0),
    ]
