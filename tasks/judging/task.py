"""Has a judge score what the targets have done (DEMO appendix D; EYT-Bench sections 3.5.2 and 3.5.3).

Reads awareness_items and awareness_predictions, interaction_episodes, interactions and interaction_turns,
chat_seeds, persona_candidates, conversations and conversation_turns, as far as the build has them. Writes
awareness_scores, interaction_scores, turn_judgements and final_intent_judgements. One run a judge
(`context.member`); nothing is simulated again.

| what is judged | requests | the judge sees                                        | by rule, without a request      |
|----------------|----------|-------------------------------------------------------|---------------------------------|
| a prediction   | 1        | gold labels, the answer                               | an empty answer: 0, 0           |
| an interaction | 1        | scene, both backgrounds and goals, what was said      | the target's fault: 0 each      |
| a turn         | 1 or 3   | rubric, persona, conversation up to the turn          | no answer: 0 each               |
| a final intent | 1        | the final intent, the whole conversation              | target's fault: not met, 1 of 5 |

Requests are in `judging.prompt_language`, whatever language is judged. A judgement that stays unreadable is a
row with NULL scores and `unscored_kind`; an interaction void by infrastructure or the partner is one too, while
void conversations get no row and count as filtered. Failures that may pass later make the thing a reject.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from tasks.foundation.errors import ModelError
from tasks.foundation.llm.prompts import Prompt
from tasks.foundation.settings.sections import JudgingSection
from tasks.foundation.stage import Asker, Prepared, Rows, Stage, StageContext
from tasks.foundation.store.accounting import Accounting
from tasks.judging.briefs import Brief, FinalBrief, InteractionBrief, PredictionBrief, TurnBrief, briefs
from tasks.judging.compare import answer_of
from tasks.judging.families import Party, check_families
from tasks.judging.prompts import (
    AWARENESS,
    FINAL,
    INTERACTION,
    TURN,
    FinalInputs,
    TurnInputs,
    awareness_inputs,
    interaction_inputs,
)
from tasks.judging.rows import Judge, Unscored, awareness_row, final_row, interaction_row, turn_row
from tasks.judging.rubric import RUBRIC, lines, portions, turn_reply
from tasks.judging.worklist import worklist


def check(context: StageContext) -> None:
    """The family rule for this judge and the conversations of this build; ConfigError too for an alias in them that
    is no longer a model."""
    waiver = context.settings.conversation.family_waiver
    others = _parties(context)
    for alias in [context.member] if context.member else context.settings.judging.judges:
        check_families(_party(context, "judge", alias), others, waiver)


def _parties(context: StageContext) -> list[Party]:
    conversations = context.read("conversations", columns=("target", "simulator"))
    return [
        _party(context, role, alias)
        for role in ("target", "simulator")
        for alias in sorted(conversations[role].unique().to_list())
    ]


def _party(context: StageContext, role: str, alias: str) -> Party:
    return Party(role, alias, context.model(alias).family)


def prepare(context: StageContext) -> Prepared:
    """Everything there is to judge is an item."""
    todo = worklist(context)
    left_out = sum(todo.left_out.values())
    return Prepared(items=todo.keys, accounting=Accounting(left_out, 0, todo.left_out))


@dataclass(frozen=True, slots=True)
class Bench:
    """A judge at work on one thing."""

    context: StageContext
    ask: Asker

    @property
    def judge(self) -> Judge:
        assert self.context.member is not None
        return Judge(self.context.member, self.context.model(self.context.member).family)

    @property
    def language(self) -> str:
        return self.context.settings.judging.prompt_language

    async def opinion(
        self, prompt: Prompt[Any, Any], inputs: BaseModel, purpose: str, reply: type[BaseModel] | None = None
    ) -> Any:
        """The judge's reply, or why there is none; failures that may pass later are raised."""
        section = self.context.settings.judging
        try:
            return await self.ask(
                prompt,
                inputs,
                language=self.language,
                alias=self.judge.alias,
                purpose=purpose,
                temperature=section.temperature,
                max_tokens=section.max_tokens,
                reply=reply,
            )
        except ModelError as error:
            if error.may_pass_later:
                raise
            return Unscored(error.kind)


async def work(context: StageContext, brief: Brief, ask: Asker) -> Rows:
    """Judges one thing, by a rule where there is one."""
    bench = Bench(context, ask)
    match brief:
        case PredictionBrief():
            return await _prediction(bench, brief)
        case InteractionBrief():
            return await _interaction(bench, brief)
        case TurnBrief():
            return await _turn(bench, brief)
        case FinalBrief():
            return await _final(bench, brief)


async def _prediction(bench: Bench, brief: PredictionBrief) -> Rows:
    answer = answer_of(brief.item.gold, brief.prediction)
    opinion = None
    if answer:
        opinion = await bench.opinion(AWARENESS, awareness_inputs(brief.item, answer), "awareness_judge")
    return {"awareness_scores": [awareness_row(brief.prediction, bench.judge, opinion)]}


async def _interaction(bench: Bench, brief: InteractionBrief) -> Rows:
    interaction = brief.interaction
    opinion, by_rule = None, True
    if interaction.fault in ("infra", "partner"):
        opinion = Unscored(f"{interaction.fault}_fault")
    elif interaction.fault == "none":
        inputs = interaction_inputs(brief.episode, brief.turns, bench.language)
        opinion, by_rule = await bench.opinion(INTERACTION, inputs, "interaction_judge"), False
    row = interaction_row(interaction.interaction_id, bench.judge, opinion, by_rule=by_rule)
    return {"interaction_scores": [row]}


async def _turn(bench: Bench, brief: TurnBrief) -> Rows:
    opinions: dict[str, BaseModel | Unscored] | None = None
    if brief.answered:
        opinions = {}
        for names in portions(bench.context.settings.judging.split):
            opinions |= dict.fromkeys(names, await _portion(bench, brief, names))
    row = turn_row(brief.conversation_id, brief.turn_index, bench.judge, opinions)
    return {"turn_judgements": [row]}


async def _portion(bench: Bench, brief: TurnBrief, names: tuple[str, ...]) -> BaseModel | Unscored:
    """The judge's reply for some of the sub-indicators."""
    scale = bench.context.settings.judging.subscore_scale
    inputs = TurnInputs(
        half=scale == "half",
        rubric=lines(names, bench.language),
        persona=brief.persona,
        conversation=list(brief.conversation),
    )
    found: BaseModel | Unscored = await bench.opinion(TURN, inputs, "turn_judge", turn_reply(names, scale))
    return found


async def _final(bench: Bench, brief: FinalBrief) -> Rows:
    opinion = None
    if not brief.target_at_fault:
        inputs = FinalInputs(
            final_intent=brief.final_intent,
            conversation=list(brief.conversation),
            unanswered=brief.unanswered,
        )
        opinion = await bench.opinion(FINAL, inputs, "final_judge")
    return {"final_intent_judgements": [final_row(brief.conversation_id, bench.judge, opinion)]}


READS: Sequence[str] = (
    "awareness_items",
    "awareness_predictions",
    "interaction_episodes",
    "interactions",
    "interaction_turns",
    "chat_seeds",
    "persona_candidates",
    "conversations",
    "conversation_turns",
)

STAGE = Stage(
    name="judging",
    doc="Predictions, interactions and conversations → the scores of each judge.",
    section=JudgingSection,
    reads=tuple(READS),
    reads_if_made=tuple(READS),
    items_from={
        "awareness/": "awareness_predictions",
        "interaction/": "interactions",
        "turn/": "conversation_turns",
        "final/": "conversations",
    },
    prepare=prepare,
    briefs=briefs,
    work=work,
    worked=("awareness_scores", "interaction_scores", "turn_judgements", "final_intent_judgements"),
    prompts=(AWARENESS, INTERACTION, TURN, FINAL),
    taxonomies=(RUBRIC, "talkway"),
    roles=lambda settings: {"judges": settings.judging.judges},
    check=check,
    fan_out="judges",
)
