"""One turn of one side: what it sees, and the reply that is checked.

The system message is the same for a side's whole talk, so that a local model reads it only once.
"""

from __future__ import annotations

from tasks.foundation.demo.speaking import Participant, show_side
from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.dialogues import InteractionEpisode
from tasks.foundation.texts.replies import ReplyModel, asked


class Speech(ReplyModel):
    """JSON, as in the paper's test case, because a small model then comes to an end. It may be as long as `max_tokens`
    lets it be: nobody is at fault for saying much."""

    content: str = asked("what you say", "你说的话", min_length=1)


class SpeakInputs(Inputs):
    name: str
    background: str
    goal: str
    partner: str
    partner_background: str
    relationship: str
    familiarity: int
    topic: str
    time: str
    location: str
    talkway: str
    talk: str
    turn: int


SPEAK = Prompt("interaction/speak", inputs=SpeakInputs, reply=Speech)


def read_participants(episode: InteractionEpisode) -> tuple[Participant, Participant]:
    return (
        Participant(episode.speaker1, episode.background1, episode.goal1),
        Participant(episode.speaker2, episode.background2, episode.goal2),
    )


def make_speak_inputs(episode: InteractionEpisode, speaker: int, talk: str, turn: int) -> SpeakInputs:
    """What participant `speaker` (1 or 2) sees before its turn; `talk` is what was said so far."""
    return SpeakInputs(
        **show_side(*read_participants(episode), speaker, episode.familiarity),
        relationship=episode.relationship,
        familiarity=episode.familiarity,
        topic=episode.topic,
        time=episode.time,
        location=episode.location,
        talkway=taxonomy("talkway").show(episode.talkway, episode.language),
        talk=talk,
        turn=turn,
    )
