"""What the conversation stage asks: of the target a reading and an answer each turn, of the simulator the next turn.

Prompts grow by one exchange a turn, so what an exchange adds is measured once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tasks.conversation.prompts import (
    ANSWER,
    PERCEIVE,
    SIMULATE,
    USER_TEXT_CHARACTERS,
    AnswerInputs,
    Exchange,
    PerceiveInputs,
    SimulateInputs,
    label_inputs,
    predicted_labels,
    simulated_turn,
)
from tasks.conversation.stopping import ACHIEVED_IN_A_ROW
from tasks.foundation.llm.request import Message
from tasks.foundation.planning.estimate import Ask, Estimate, Kind, Portion, View
from tasks.foundation.planning.extremes import SHORT_PHRASE, filler
from tasks.foundation.planning.meter import Meter, PromptSize
from tasks.foundation.planning.span import Span
from tasks.foundation.settings.sections import ConversationSection
from tasks.foundation.tables.evaluation import ChatSeed, Conversation, ConversationTurn


@dataclass(frozen=True, slots=True)
class Talk:
    """A short or the longest conversation: its seed, its persona, and the exchange that each of its turns is."""

    section: ConversationSection
    seed: ChatSeed
    persona: str
    exchange: Exchange

    def perception(self, said: list[Exchange]) -> Sequence[Message]:
        shown = self.section.persona_to_target != "none"
        inputs = PerceiveInputs(
            **label_inputs(self.seed.language),
            persona=self.persona if shown else "",
            turns=said,
            user_text=self.exchange.user,
        )
        return PERCEIVE.render(self.seed.language, inputs)

    def generation(self, said: list[Exchange]) -> Sequence[Message]:
        shown = self.section.persona_to_target == "both"
        inputs = AnswerInputs(persona=self.persona if shown else "", user_text=self.exchange.user)
        history = [
            message for one in said for message in (Message("user", one.user), Message("assistant", one.assistant))
        ]
        return (*history, *ANSWER.render(self.seed.language, inputs))

    def simulation(self, said: list[Exchange]) -> Sequence[Message]:
        inputs = SimulateInputs(
            **label_inputs(self.seed.language),
            persona=self.persona,
            topic=self.seed.topic or "",
            initial_emotion=self.seed.initial_emotion or "",
            final_intent=self.seed.final_intent or "",
            turns=said,
            trouble="",
            attempt=1,
        )
        return SIMULATE.render(self.seed.language, inputs)


def estimate(view: View) -> Estimate:
    section = view.settings.conversation
    fewest = min(ACHIEVED_IN_A_ROW, section.max_turns)
    asks: list[Ask] = []
    conversations: list[Portion] = []
    turns: list[Portion] = []
    for portion in view.portions("chat_seeds"):
        talks = [pair for kind in portion.kinds if (pair := _talks(view, kind)) is not None]
        if not talks or not portion.rows.high:
            continue
        count = portion.rows * section.samples
        for turn in range(1, section.max_turns + 1):
            requests = Span(count.low if turn <= fewest else 0, count.high)
            asks += _turn(view, requests, turn, [talk for pair in talks for talk in pair])
            turns.append(Portion(requests, tuple(_turn_rows(pair, turn) for pair in talks)))
        lengths = (fewest, section.max_turns)
        conversations.append(Portion(count, tuple(_conversation_rows(pair, lengths) for pair in talks)))
    assumed = (
        f"a conversation has {fewest} to {section.max_turns} answered turns; a user turn is asked for once, at most "
        f"1 + label_reasks = {1 + section.label_reasks} times; an answer may be as long as max_tokens = "
        f"{section.max_tokens:,} allows, and all later prompts show it"
    )
    return Estimate(asks, {"conversations": conversations, "conversation_turns": turns}, [assumed] if asks else [])


Pair = tuple[Talk, Talk]


def _talks(view: View, kind: Kind) -> Pair | None:
    personas = view.kind("persona_candidates", None)
    if personas is None:
        return None
    section, language = view.settings.conversation, kind.language
    phrase = filler(SHORT_PHRASE[language], language)
    longest = view.meter(view.alias).longest_reply(section.max_tokens, view.settings.llm, language)
    short = Exchange(user=phrase, assistant=phrase)
    long = Exchange(user=filler(USER_TEXT_CHARACTERS, language), assistant=longest)
    return (
        Talk(section, kind.short, personas.short.description, short),
        Talk(section, kind.long, personas.long.description, long),
    )


def _turn(view: View, requests: Span, turn: int, talks: Sequence[Talk]) -> list[Ask]:
    """The three requests of a turn; the simulator sees its answer too, and may be asked again."""
    section = view.settings.conversation
    target, simulator = view.meter(view.alias), view.meter(section.simulator)
    language, budget = talks[0].seed.language, section.max_tokens
    read, answered = target.reply(predicted_labels(), language), target.reply(None, language)
    spoken = simulator.reply(simulated_turn(), language)
    simulated = Span(requests.low, requests.high * (1 + section.label_reasks))
    return [
        Ask(view.alias, "perception", requests, _prompt(target, talks, Talk.perception, turn - 1), read, budget),
        Ask(view.alias, "generation", requests, _prompt(target, talks, Talk.generation, turn - 1), answered, budget),
        Ask(
            section.simulator, "simulation", simulated, _prompt(simulator, talks, Talk.simulation, turn), spoken, budget
        ),
    ]


Show = Callable[[Talk, list[Exchange]], Sequence[Message]]


def _prompt(meter: Meter, talks: Sequence[Talk], show: Show, answered: int) -> PromptSize:
    """The size of a prompt that shows so many answered turns."""
    sizes = []
    for talk in talks:
        none, one = (meter.messages(show(talk, [talk.exchange] * count)) for count in (0, 1))
        sizes.append(none.grown(one, answered))
    return PromptSize.around(sizes)


def _turn_rows(talks: Pair, turn: int) -> Kind:
    make = partial(ConversationTurn.model_construct, turn_index=turn)
    rows = (make(user_text=talk.exchange.user, assistant_text=talk.exchange.assistant) for talk in talks)
    return Kind.made_of(talks[0].seed.language, rows)


def _conversation_rows(talks: Pair, turns: tuple[int, int]) -> Kind:
    rows = (
        Conversation.model_construct(t_actual=count, final_user_text=talk.exchange.user)
        for talk, count in zip(talks, turns, strict=True)
    )
    return Kind.made_of(talks[0].seed.language, rows)
