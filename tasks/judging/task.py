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

Requests are in `judging.prompt_language`, whatever language is judged. Criteria of a reply that cannot be used are
asked for again, without the others. A share of the judgements (`retest_share`) is drawn a second time, as sample 1, and
both are written to judgement_repeats; the first is the one that counts. A judgement that stays unreadable is a row with
NULL scores and `unscored_kind`; an interaction void by infrastructure or the partner is one too, while void
conversations get no row and count as filtered. Failures that may pass later make the thing a reject.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from tasks.foundation.errors import ModelError
from tasks.foundation.ids import is_drawn
from tasks.foundation.llm.prompts import Prompt
from tasks.foundation.settings.sections import JudgingSection
from tasks.foundation.stage import Asker, Prepared, Rows, Stage, StageContext
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.replies import PartsReply
from tasks.judging.cases import Case, FinalIntentCase, InteractionCase, PredictionCase, TurnCase, load_cases
from tasks.judging.compare import read_answer
from tasks.judging.families import Party, check_families
from tasks.judging.prompts import (
    STYLES,
    AwarenessOpinion,
    FinalInputs,
    FinalOpinion,
    InteractionOpinion,
    JudgePrompts,
    TurnInputs,
    make_awareness_inputs,
    make_interaction_inputs,
    make_opinion_reply,
)
from tasks.judging.rows import (
    DIMENSIONS,
    Judge,
    Unscored,
    make_awareness_row,
    make_final_row,
    make_interaction_row,
    make_repeat_rows,
    make_turn_row,
)
from tasks.judging.rubric import RUBRIC, describe_columns, make_turn_reply, split_columns
from tasks.judging.worklist import list_cases


def check(context: StageContext) -> None:
    """The family rule for this judge and the conversations of this build; ConfigError too for an alias in them that
    is no longer a model."""
    waiver = context.settings.conversation.family_waiver
    others = _list_parties(context)
    for alias in [context.member] if context.member else context.settings.judging.judges:
        check_families(_make_party(context, "judge", alias), others, waiver)


def _list_parties(context: StageContext) -> list[Party]:
    conversations = context.read("conversations", columns=("target", "simulator"))
    return [
        _make_party(context, role, alias)
        for role in ("target", "simulator")
        for alias in sorted(conversations[role].unique().to_list())
    ]


def _make_party(context: StageContext, role: str, alias: str) -> Party:
    return Party(role, alias, context.model(alias).family)


def prepare(context: StageContext) -> Prepared:
    """Everything there is to judge is an item."""
    todo = list_cases(context)
    left_out = sum(todo.left_out.values())
    return Prepared(items=todo.keys, accounting=Accounting(left_out, 0, todo.left_out))


@dataclass(frozen=True, slots=True)
class JudgeSession:
    """A judge at work on one thing."""

    context: StageContext
    ask: Asker
    sample: int = 0

    @property
    def judge(self) -> Judge:
        assert self.context.member is not None
        return Judge(self.context.member, self.context.model(self.context.member).family)

    @property
    def language(self) -> Language:
        return self.context.settings.judging.prompt_language

    @property
    def prompts(self) -> JudgePrompts:
        return STYLES[self.context.settings.judging.style]

    async def opinion(
        self, prompt: Prompt[Any, Any], inputs: BaseModel, purpose: str, reply: type[BaseModel] | None = None
    ) -> Any:
        """The judge's reply; ModelError where there is none."""
        section = self.context.settings.judging
        return await self.ask(
            prompt,
            inputs,
            language=self.language,
            alias=self.judge.alias,
            purpose=purpose,
            temperature=section.temperature,
            max_tokens=section.max_tokens,
            reply=reply,
            sample=self.sample,
        )

    async def opinions(
        self, names: tuple[str, ...], ask: Callable[[tuple[str, ...]], Awaitable[PartsReply]]
    ) -> dict[str, Any]:
        """The judge's opinion by name of what is judged; of what it gave none, why."""

        async def ask_some(some: tuple[str, ...]) -> dict[str, Any]:
            return (await ask(some)).parts

        kind, found = "invalid", dict[str, Any]()
        try:
            found = await self.ask.in_parts(names, ask_some)
        except ModelError as error:
            kind = raise_if_passing(error).kind
        return {name: found.get(name, Unscored(kind)) for name in names}


def raise_if_passing(error: ModelError) -> Unscored:
    """Why there is no score; failures that may pass later are raised."""
    if error.may_pass_later:
        raise error
    return Unscored(error.kind)


async def work(context: StageContext, case: Case, ask: Asker) -> Rows:
    """Judges one thing, by a rule where there is one; a share of them a second time."""
    rows = await _judge(JudgeSession(context, ask), case)
    if not is_drawn(context.settings.judging.retest_share, context.settings.run.seed, "retest", case.key):
        return rows
    ((table, (first,)),) = rows.items()
    if first.model_dump()["scored_by"] == "rule":
        return rows
    again = await _judge(JudgeSession(context, ask, sample=1), case)
    return {**rows, "judgement_repeats": make_repeat_rows(case.key, first, again[table][0])}


async def _judge(bench: JudgeSession, case: Case) -> Rows:
    match case:
        case PredictionCase():
            return await _judge_prediction(bench, case)
        case InteractionCase():
            return await _judge_interaction(bench, case)
        case TurnCase():
            return await _judge_turn(bench, case)
        case FinalIntentCase():
            return await _judge_final_intent(bench, case)


async def _judge_prediction(bench: JudgeSession, case: PredictionCase) -> Rows:
    answer = read_answer(case.item.gold, case.prediction)

    async def ask(criteria: tuple[str, ...]) -> PartsReply:
        inputs = make_awareness_inputs(criteria, case.item, answer)
        reply = make_opinion_reply(AwarenessOpinion, criteria)
        found: PartsReply = await bench.opinion(bench.prompts.awareness, inputs, "awareness_judge", reply)
        return found

    opinions = await bench.opinions(tuple(AwarenessOpinion.model_fields), ask) if answer else None
    return {"awareness_scores": [make_awareness_row(case.prediction, bench.judge, opinions)]}


async def _judge_interaction(bench: JudgeSession, case: InteractionCase) -> Rows:
    interaction = case.interaction

    async def ask(criteria: tuple[str, ...]) -> PartsReply:
        inputs = make_interaction_inputs(criteria, case.episode, case.turns, bench.language)
        reply = make_opinion_reply(InteractionOpinion, criteria)
        found: PartsReply = await bench.opinion(bench.prompts.interaction, inputs, "interaction_judge", reply)
        return found

    opinions, by_rule = None, interaction.fault != "none"
    if interaction.fault in ("infra", "partner"):
        opinions = dict.fromkeys(DIMENSIONS, Unscored(f"{interaction.fault}_fault"))
    elif not by_rule:
        opinions = await bench.opinions(DIMENSIONS, ask)
    row = make_interaction_row(interaction.interaction_id, bench.judge, opinions, by_rule=by_rule)
    return {"interaction_scores": [row]}


async def _judge_turn(bench: JudgeSession, case: TurnCase) -> Rows:
    opinions: dict[str, Any] | None = None
    if case.answered:
        opinions = {}
        for names in split_columns(bench.context.settings.judging.split):
            opinions |= await _judge_columns(bench, case, names)
    row = make_turn_row(case.conversation_id, case.turn_index, bench.judge, opinions)
    return {"turn_judgements": [row]}


async def _judge_columns(bench: JudgeSession, case: TurnCase, names: tuple[str, ...]) -> dict[str, Any]:
    """The judge's opinion on some of the sub-indicators."""
    section = bench.context.settings.judging
    scale, half = section.subscore_scale, section.subscore_scale == "half"

    async def ask(some: tuple[str, ...]) -> PartsReply:
        inputs = TurnInputs(
            half=half,
            rubric=describe_columns(some, bench.language, half=half and section.style == "paper"),
            persona=case.persona,
            conversation=list(case.conversation),
        )
        found: PartsReply = await bench.opinion(bench.prompts.turn, inputs, "turn_judge", make_turn_reply(some, scale))
        return found

    return await bench.opinions(names, ask)


async def _judge_final_intent(bench: JudgeSession, case: FinalIntentCase) -> Rows:
    opinion: FinalOpinion | Unscored | None = None
    if not case.target_at_fault:
        inputs = FinalInputs(
            final_intent=case.final_intent,
            conversation=list(case.conversation),
            unanswered=case.unanswered,
        )
        try:
            opinion = await bench.opinion(bench.prompts.final, inputs, "final_judge")
        except ModelError as error:
            opinion = raise_if_passing(error)
    return {"final_intent_judgements": [make_final_row(case.conversation_id, bench.judge, opinion)]}


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
    load_items=load_cases,
    work=work,
    worked=(
        "awareness_scores",
        "interaction_scores",
        "turn_judgements",
        "final_intent_judgements",
        "judgement_repeats",
    ),
    prompts=tuple(prompt for style in STYLES.values() for prompt in style.all),
    taxonomies=(RUBRIC, "talkway"),
    roles=lambda settings: {"judges": settings.judging.judges},
    check=check,
    fan_out="judges",
)
