"""Algorithm 1 of EYT-Bench as a state machine: no model, no clock, only events.

A conversation says what it `wants` next and `step` gives the conversation after that has come:

    prediction → answer → user turn → prediction → …

until the stop rule or a fault ends it.

>>> hello = UserTurn("Hello", Gold("Casual Chat", "Curiosity", "Neutral"), "not_started")
>>> talk = begin(hello)
>>> for event in (Prediction("Casual Chat", None, "Joy"), Answer("Hi!"), Fault("simulator", "labels")):
...     talk = step(talk, event, max_turns=10)
>>> talk.wants, talk.ended.fault, talk.answered
(None, 'simulator', 1)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tasks.conversation.labels import Gold, Progress
from tasks.conversation.stopping import find_stop_reason

Wanted = Literal["prediction", "answer", "user turn"]


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What the user says, with the simulator's labels, how often it had to be asked again for it, and the guards that
    fired meanwhile."""

    text: str
    gold: Gold
    progress: Progress
    label_reasks: int = 0
    role_breaks: int = 0
    guards: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """The target's labels; None: unreadable or out of vocabulary. `lost`: the kind of infrastructure failure
    that took the prediction; None: none did."""

    explicit: str | None = None
    latent: str | None = None
    emotion: str | None = None
    lost: str | None = None


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    text: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Somebody failed for good, and `why`; of a simulator, how often it had been asked again by then."""

    whose: Literal["simulator", "target"]
    why: str
    label_reasks: int = 0
    role_breaks: int = 0
    guards: tuple[str, ...] = ()


Event = Prediction | TargetAnswer | UserTurn | Fault


@dataclass(frozen=True, slots=True)
class Turn:
    """A user turn and what the target has made of it so far."""

    user: UserTurn
    prediction: Prediction | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """`unanswered` is the user turn that met the stop rule; None where a fault ended the conversation. The counts are
    of re-asks for that turn, or for the one that the simulator did not get right."""

    stop_reason: Literal["achieved", "max_turns", "fault"]
    fault: Literal["none", "simulator", "target"]
    unanswered: UserTurn | None = None
    label_reasks: int = 0
    role_breaks: int = 0
    guards: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConversationState:
    """A conversation so far. Only the last turn can lack its prediction or answer."""

    turns: tuple[Turn, ...]
    ended: Ended | None = None

    @property
    def wants(self) -> Wanted | None:
        """What has to come next; None: the conversation has ended."""
        last = self.turns[-1]
        if self.ended:
            return None
        if last.prediction is None:
            return "prediction"
        return "answer" if last.answer is None else "user turn"

    @property
    def answered(self) -> int:
        """Turns that the target has answered."""
        return sum(turn.answer is not None for turn in self.turns)


def begin(opening: UserTurn) -> ConversationState:
    """The conversation that starts with the seed's first query."""
    return ConversationState((Turn(opening),))


def step(talk: ConversationState, event: Event, max_turns: int) -> ConversationState:
    """The conversation after `event`; ValueError for an event that it does not want."""
    match talk.wants, event:
        case "prediction", Prediction():
            return _with_last(talk, replace(talk.turns[-1], prediction=event))
        case "answer", TargetAnswer():
            return _with_last(talk, replace(talk.turns[-1], answer=event.text))
        case ("answer", Fault("target") as fault) | ("user turn", Fault("simulator") as fault):
            return replace(talk, ended=Ended("fault", fault.whose, None, *_count(fault)))
        case "user turn", UserTurn():
            return _after_user(talk, event, max_turns)
    raise ValueError(f"the conversation wants {talk.wants!r}, found {event!r}")


def _count(spoken: UserTurn | Fault) -> tuple[int, int, tuple[str, ...]]:
    return spoken.label_reasks, spoken.role_breaks, spoken.guards


def _with_last(talk: ConversationState, turn: Turn) -> ConversationState:
    return replace(talk, turns=(*talk.turns[:-1], turn))


def _after_user(talk: ConversationState, user: UserTurn, max_turns: int) -> ConversationState:
    progress = [turn.user.progress for turn in talk.turns] + [user.progress]
    reason = find_stop_reason(progress, talk.answered, max_turns)
    if reason is not None:
        return replace(talk, ended=Ended(reason, "none", user, *_count(user)))
    return replace(talk, turns=(*talk.turns, Turn(user)))
