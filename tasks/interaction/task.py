"""Lets a target talk its way through episodes (DEMO section 2.2.2; prompt after appendix E.5).

Reads interaction_episodes. Writes interactions and interaction_turns. One run a target (`context.member`),
one request an utterance: at most `max_turns` for each episode and sample, in the episode's language.

In self-play the target plays both sides; with `interaction.partner` it plays participant 1, who opens, and
the partner participant 2. A side whose reply is empty, broken, filtered or does not fit its context any more,
after all re-asks, is at fault: the talk stops there and is kept. A failure that may pass later makes the
episode a reject that the next run plays again from the cache up to where it broke off; so no row with fault
`infra` is written here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tasks.foundation.demo.records import rows_by, transcript
from tasks.foundation.ids import content_id
from tasks.foundation.settings import Settings
from tasks.foundation.settings.sections import InteractionSection
from tasks.foundation.stage import Asker, Prepared, Rows, Stage, StageContext
from tasks.foundation.tables.dialogues import InteractionEpisode
from tasks.foundation.tables.evaluation import Interaction, InteractionTurn
from tasks.interaction.play import Played, Said, play
from tasks.interaction.prompts import SPEAK, Speech, speak_inputs


@dataclass(frozen=True, slots=True)
class Brief:
    """An episode to be played by these models; `target` opens."""

    interaction_id: str
    episode: InteractionEpisode
    target: str
    partner: str
    sample: int

    def alias(self, speaker: int) -> str:
        return self.target if speaker == 1 else self.partner

    @property
    def names(self) -> tuple[str, str]:
        return (self.episode.speaker1, self.episode.speaker2)


def prepare(context: StageContext) -> Prepared:
    """Every episode, once for each sample."""
    return Prepared(items=list(_items(context)))


def _items(context: StageContext) -> dict[str, tuple[str, int]]:
    """Episode and sample of every interaction, by its id."""
    target, partner = _players(context)
    return {
        content_id("interaction", episode_id, target, partner, sample): (episode_id, sample)
        for episode_id in context.read("interaction_episodes", columns=("episode_id",))["episode_id"].to_list()
        for sample in range(context.settings.interaction.samples)
    }


def _players(context: StageContext) -> tuple[str, str]:
    """Aliases of target and partner; the target twice in self-play."""
    assert context.member is not None
    return context.member, context.settings.interaction.partner or context.member


def briefs(context: StageContext, keys: Sequence[str]) -> Mapping[str, Brief]:
    target, partner = _players(context)
    items = _items(context)
    episode_ids = (items[key][0] for key in keys)
    episodes = rows_by(context.read, "interaction_episodes", InteractionEpisode, "episode_id", episode_ids)
    return {key: Brief(key, episodes[items[key][0]], target, partner, items[key][1]) for key in keys}


async def work(context: StageContext, brief: Brief, ask: Asker) -> Rows:
    """Plays the episode."""
    section = context.settings.interaction

    async def speak(speaker: int, turns: tuple[Said, ...]) -> str:
        talk = transcript(brief.names, ((said.speaker, said.text) for said in turns))
        reply: Speech = await ask(
            SPEAK,
            speak_inputs(brief.episode, speaker, talk, len(turns) + 1),
            language=brief.episode.language,
            alias=brief.alias(speaker),
            purpose="speak",
            temperature=section.temperature,
            max_tokens=section.max_tokens,
            sample=brief.sample,
        )
        return reply.content

    return rows_of(brief, await play(brief.names, section.max_turns, speak))


def rows_of(brief: Brief, played: Played) -> Rows:
    """The interaction and its turns."""
    interaction = Interaction(
        interaction_id=brief.interaction_id,
        episode_id=brief.episode.episode_id,
        target=brief.target,
        partner=brief.partner,
        sample=brief.sample,
        turn_count=len(played.turns),
        stop_reason=played.stop_reason,
        fault=_fault(brief, played.at_fault),
    )
    turns = [
        InteractionTurn(interaction_id=brief.interaction_id, turn_index=turn, speaker=said.speaker, text=said.text)
        for turn, said in enumerate(played.turns, start=1)
    ]
    return {"interactions": [interaction], "interaction_turns": turns}


def _fault(brief: Brief, at_fault: int | None) -> Literal["none", "partner", "target"]:
    """Whose fault it is; in self-play every side is the target."""
    if at_fault is None:
        return "none"
    return "target" if brief.alias(at_fault) == brief.target else "partner"


def _roles(settings: Settings) -> Mapping[str, Sequence[str]]:
    section = settings.interaction
    return {"targets": section.targets, "partner": [section.partner] if section.partner else []}


STAGE = Stage(
    name="interaction",
    doc="Interaction episodes → the dialogues that each target plays.",
    section=InteractionSection,
    benchmark="demo",
    reads=("interaction_episodes",),
    items_from={"": "interaction_episodes"},
    prepare=prepare,
    briefs=briefs,
    work=work,
    worked=("interactions", "interaction_turns"),
    prompts=(SPEAK,),
    taxonomies=("talkway",),
    roles=_roles,
    fan_out="targets",
)
