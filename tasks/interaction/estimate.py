"""What the interaction stage asks a target and its partner: one request for every utterance of every episode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tasks.foundation.demo.records import transcript
from tasks.foundation.planning.estimate import Ask, Estimate, Kind, Portion, View
from tasks.foundation.planning.extremes import SHORT_PHRASE, filler
from tasks.foundation.planning.meter import Meter, PromptSize
from tasks.foundation.planning.span import Span
from tasks.foundation.tables.dialogues import InteractionEpisode
from tasks.foundation.tables.evaluation import Interaction, InteractionTurn
from tasks.interaction.prompts import SPEAK, Speech, speak_inputs

UTTERANCE_CHARACTERS = 600
"""Few utterances are longer."""

FEWEST_TURNS = 2
"""A talk may end this soon."""


def estimate(view: View) -> Estimate:
    section = view.settings.interaction
    fewest = min(FEWEST_TURNS, section.max_turns)
    players = (view.alias, section.partner or view.alias)
    asks: list[Ask] = []
    interactions: list[Portion] = []
    turns: list[Portion] = []
    for portion in view.portions("interaction_episodes"):
        if not portion.kinds or not portion.rows.high:
            continue
        talks = portion.rows * section.samples
        for turn in range(1, section.max_turns + 1):
            requests = Span(talks.low if turn <= fewest else 0, talks.high)
            asks.append(_turn(view, players[1 - turn % 2], requests, turn, portion.kinds))
        lengths = (fewest, section.max_turns)
        interactions.append(Portion(talks, tuple(_interaction(kind.language, lengths) for kind in portion.kinds)))
        turns.append(Portion(talks, tuple(_utterance(kind.language) for kind in portion.kinds)))
    assumed = (
        f"a talk has {fewest} to {section.max_turns} utterances, taken to have at most {UTTERANCE_CHARACTERS} "
        "characters, also where a side answers in plain words instead of JSON"
    )
    return Estimate(asks, {"interactions": interactions, "interaction_turns": turns}, [assumed] if asks else [])


def _turn(view: View, alias: str, requests: Span, turn: int, kinds: Sequence[Kind]) -> Ask:
    meter = view.meter(alias)
    prompts = [
        _prompt(meter, episode, turn, characters)
        for kind in kinds
        for episode, characters in zip(kind.both, _lengths(kind.language), strict=True)
    ]
    reply = meter.reply(Speech, kinds[0].language)
    return Ask(alias, "speak", requests, PromptSize.around(prompts), reply, view.settings.interaction.max_tokens)


def _prompt(meter: Meter, episode: InteractionEpisode, turn: int, characters: int) -> PromptSize:
    """What a side sees before its turn; it grows by one line a turn."""
    said = [(1 + earlier % 2, filler(characters, episode.language)) for earlier in range(turn - 1)]
    talk = transcript((episode.speaker1, episode.speaker2), said)
    size = meter.messages(SPEAK.render(episode.language, speak_inputs(episode, 2 - turn % 2, talk, turn)))
    return PromptSize(size.tokens, size.tokens.high)


def _lengths(language: str) -> tuple[int, int]:
    """Characters of a short and of the longest utterance."""
    return (SHORT_PHRASE[language], UTTERANCE_CHARACTERS)


def _interaction(language: str, lengths: tuple[int, int]) -> Kind:
    rows = [Interaction.model_construct(turn_count=turns) for turns in lengths]
    return Kind.made_of(language, rows)


def _utterance(language: str) -> Kind:
    plain: dict[str, Any] = {"interaction_id": "interaction", "turn_index": 1, "speaker": 1}
    rows = [InteractionTurn(**plain, text=filler(characters, language)) for characters in _lengths(language)]
    return Kind.made_of(language, rows)
