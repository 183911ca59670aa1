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

from tasks.foundation.demo.records import load_rows_by, write_transcript
from tasks.foundation.ids import content_id
from tasks.foundation.settings import Settings
from tasks.foundation.settings.sections import InteractionSection
from tasks.foundation.stage import Asker, Prepared, Rows, Stage, StageContext
from tasks.foundation.tables.dialogues import InteractionEpisode
from tasks.foundation.tables.evaluation import Interaction, InteractionTurn
from tasks.foundation.texts.spoken import Voice, find_guards
from tasks.interaction.play import PlayedEpisode, SpokenTurn, play
from tasks.interaction.prompts import SPEAK, Speech, make_speak_inputs


@dataclass(frozen=True, slots=True)
class EpisodeToPlay:
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
    return Prepared(items=list(_list_items(context)))


def _list_items(context: StageContext) -> dict[str, tuple[str, int]]:
    """Episode and sample of every interaction, by its id."""
    target, partner = _name_players(context)
    return {
        content_id("interaction", episode_id, target, partner, sample): (episode_id, sample)
        for episode_id in context.read("interaction_episodes", columns=("episode_id",))["episode_id"].to_list()
        for sample in range(context.settings.interaction.samples)
    }


def _name_players(context: StageContext) -> tuple[str, str]:
    """Aliases of target and partner; the target twice in self-play."""
    assert context.member is not None
    return context.member, context.settings.interaction.partner or context.member


def load_episodes(context: StageContext, keys: Sequence[str]) -> Mapping[str, EpisodeToPlay]:
    target, partner = _name_players(context)
    items = _list_items(context)
    episode_ids = (items[key][0] for key in keys)
    episodes = load_rows_by(context.read, "interaction_episodes", InteractionEpisode, "episode_id", episode_ids)
    return {key: EpisodeToPlay(key, episodes[items[key][0]], target, partner, items[key][1]) for key in keys}


async def work(context: StageContext, setup: EpisodeToPlay, ask: Asker) -> Rows:
    """Plays the episode."""
    section = context.settings.interaction

    async def speak(speaker: int, turns: tuple[SpokenTurn, ...]) -> str:
        talk = write_transcript(setup.names, ((said.speaker, said.text) for said in turns), setup.episode.language)
        reply: Speech = await ask(
            SPEAK,
            make_speak_inputs(setup.episode, speaker, talk, len(turns) + 1),
            language=setup.episode.language,
            alias=setup.alias(speaker),
            purpose="speak",
            temperature=section.temperature,
            max_tokens=section.max_tokens,
            sample=setup.sample,
        )
        return reply.content

    return make_rows(setup, await play(setup.names, section.max_turns, speak))


def make_rows(setup: EpisodeToPlay, played: PlayedEpisode) -> Rows:
    """The interaction and its turns."""
    interaction = Interaction(
        interaction_id=setup.interaction_id,
        episode_id=setup.episode.episode_id,
        target=setup.target,
        partner=setup.partner,
        sample=setup.sample,
        turn_count=len(played.turns),
        stop_reason=played.stop_reason,
        fault=_find_fault(setup, played.at_fault),
    )
    guards = _find_guards(setup, played.turns)
    turns = [
        InteractionTurn(
            interaction_id=setup.interaction_id,
            turn_index=turn,
            speaker=said.speaker,
            text=said.text,
            guards=list(guards[turn - 1]),
        )
        for turn, said in enumerate(played.turns, start=1)
    ]
    return {"interactions": [interaction], "interaction_turns": turns}


def _find_guards(setup: EpisodeToPlay, turns: Sequence[SpokenTurn]) -> list[tuple[str, ...]]:
    """The guards that fire on what each side's model wrote; they are counted, and nothing is mended."""
    episode, found = setup.episode, list[tuple[str, ...]]()
    instructions = SPEAK.sentences(episode.language)
    for place, said in enumerate(turns):
        told = (episode.goal1 if said.speaker == 1 else episode.goal2, *instructions)
        before = [turn.text for turn in turns[:place]]
        found.append(find_guards(said.written, Voice(episode.language, setup.names, told), before))
    return found


def _find_fault(setup: EpisodeToPlay, at_fault: int | None) -> Literal["none", "partner", "target"]:
    """Whose fault it is; in self-play every side is the target."""
    if at_fault is None:
        return "none"
    return "target" if setup.alias(at_fault) == setup.target else "partner"


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
    load_items=load_episodes,
    work=work,
    worked=("interactions", "interaction_turns"),
    prompts=(SPEAK,),
    taxonomies=("talkway",),
    roles=_roles,
    fan_out="targets",
)
