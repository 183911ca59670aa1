"""What the judging stage asks a judge: one request for every prediction, interaction, turn and final intent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tasks.foundation.llm.request import Message
from tasks.foundation.planning.estimate import Ask, Estimate, Kind, View
from tasks.foundation.planning.meter import PromptSize, Reply
from tasks.foundation.planning.span import Span
from tasks.foundation.tables.evaluation import ConversationTurn
from tasks.judging.compare import answer_of
from tasks.judging.prompts import (
    AWARENESS,
    FINAL,
    INTERACTION,
    TURN,
    AwarenessOpinion,
    Exchange,
    FinalInputs,
    FinalOpinion,
    InteractionOpinion,
    TurnInputs,
    awareness_inputs,
    interaction_inputs,
)
from tasks.judging.rubric import lines, portions, turn_reply


def estimate(view: View) -> Estimate:
    asks = [*_predictions(view), *_interactions(view), *_turns(view), *_finals(view)]
    subsample = view.settings.judging.of(view.member).subsample
    said = "nothing is scored by a rule without asking the judge, and no conversation is void"
    if subsample is not None:
        said += f"; judging.subsample.n = {subsample.n:,} conversations are judged"
    return Estimate(asks, {}, [said] if asks else [])


def _ask(view: View, purpose: str, requests: Span, prompts: Iterable[PromptSize], reply: Reply) -> Ask:
    return Ask(view.alias, purpose, requests, PromptSize.around(prompts), reply, view.settings.judging.max_tokens)


def _size(view: View, messages: Sequence[Message]) -> PromptSize:
    return view.meter(view.alias).messages(messages)


def _predictions(view: View) -> Iterator[Ask]:
    language = view.settings.judging.prompt_language
    reply = view.meter(view.alias).reply(AwarenessOpinion, language)
    for portion in view.portions("awareness_predictions"):
        prompts = []
        for kind in portion.kinds:
            items = view.kind("awareness_items", kind.language, kind.of)
            for item, prediction in zip(items.both, kind.both, strict=True) if items else ():
                inputs = awareness_inputs(item, answer_of(item.gold, prediction))
                prompts.append(_size(view, AWARENESS.render(language, inputs)))
        if prompts:
            yield _ask(view, "awareness_judge", portion.rows, prompts, reply)


def _interactions(view: View) -> Iterator[Ask]:
    language = view.settings.judging.prompt_language
    reply = view.meter(view.alias).reply(InteractionOpinion, language)
    for portion in view.portions("interactions"):
        prompts = []
        for kind in portion.kinds:
            episodes = view.kind("interaction_episodes", kind.language)
            said = view.kind("interaction_turns", kind.language)
            if episodes is None or said is None:
                continue
            for episode, interaction, turn in zip(episodes.both, kind.both, said.both, strict=True):
                inputs = interaction_inputs(episode, [turn] * interaction.turn_count, language)
                prompts.append(_size(view, INTERACTION.render(language, inputs)))
        if prompts:
            yield _ask(view, "interaction_judge", portion.rows, prompts, reply)


def _turns(view: View) -> Iterator[Ask]:
    section, meter = view.settings.judging, view.meter(view.alias)
    language = section.prompt_language
    for portion in view.portions("conversation_turns"):
        rows = _sampled(view, portion.rows)
        for names in portions(section.split):
            reply = meter.reply(turn_reply(names, section.subscore_scale), language)
            prompts = [prompt for kind in portion.kinds for prompt in _turn_prompts(view, kind, names)]
            if prompts:
                yield _ask(view, "turn_judge", rows, prompts, reply)


def _turn_prompts(view: View, kind: Kind, names: tuple[str, ...]) -> Iterator[PromptSize]:
    """The shortest and the longest prompt about a turn: it grows by one exchange a turn."""
    section, personas = view.settings.judging, view.kind("persona_candidates", None)
    language = section.prompt_language
    for persona, turn in zip(personas.both, kind.both, strict=True) if personas else ():
        shown = [
            TurnInputs(
                half=section.subscore_scale == "half",
                rubric=lines(names, language),
                persona=persona.description,
                conversation=[_exchange(turn)] * count,
            )
            for count in (0, 1)
        ]
        none, one = (_size(view, TURN.render(language, inputs)) for inputs in shown)
        yield none.grown(one, turn.turn_index)


def _finals(view: View) -> Iterator[Ask]:
    language = view.settings.judging.prompt_language
    reply = view.meter(view.alias).reply(FinalOpinion, language)
    for portion in view.portions("conversations"):
        prompts = [prompt for kind in portion.kinds for prompt in _final_prompts(view, kind)]
        if prompts:
            yield _ask(view, "final_judge", _sampled(view, portion.rows), prompts, reply)


def _final_prompts(view: View, kind: Kind) -> Iterator[PromptSize]:
    language = view.settings.judging.prompt_language
    seeds, turns = view.kind("chat_seeds", kind.language), view.kind("conversation_turns", kind.language)
    if seeds is None or turns is None:
        return
    for seed, talk, turn in zip(seeds.both, kind.both, turns.both, strict=True):
        shown = [
            FinalInputs(
                final_intent=seed.final_intent or "",
                conversation=[_exchange(turn)] * count,
                unanswered=talk.final_user_text or "",
            )
            for count in (0, 1)
        ]
        none, one = (_size(view, FINAL.render(language, inputs)) for inputs in shown)
        yield none.grown(one, talk.t_actual)


def _exchange(turn: ConversationTurn) -> Exchange:
    return Exchange(user=turn.user_text, assistant=turn.assistant_text or "")


def _sampled(view: View, rows: Span) -> Span:
    """Of all conversations the judge sees at most so many; of which portion they come is not known."""
    subsample, several = view.settings.judging.of(view.member).subsample, len(view.portions("conversations")) > 1
    if subsample is None:
        return rows
    return Span(0 if several else min(rows.low, subsample.n), min(rows.high, subsample.n))
