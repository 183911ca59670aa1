"""A finished conversation as the rows of its two tables."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.conversation.loop import ConversationState, Turn
from tasks.conversation.prompts import ANSWER, SIMULATE
from tasks.conversation.setup import ConversationSetup
from tasks.conversation.stopping import STOP_RULE
from tasks.foundation.ids import content_id
from tasks.foundation.settings.sections import ConversationSection
from tasks.foundation.tables.evaluation import Conversation, ConversationTurn
from tasks.foundation.texts.spoken import Voice, find_guards

ASSISTANT_NAMES = ("assistant", "助手")


def conversation_id(setup: ConversationSetup, section: ConversationSection) -> str:
    """Over seed, target, simulator, sample, what the target is told of the persona, and when it stops."""
    return content_id(
        "conversation",
        setup.seed.chat_seed_id,
        setup.target,
        section.simulator,
        setup.sample,
        section.persona_to_target,
        section.max_turns,
        STOP_RULE,
    )


def name_protocol(section: ConversationSection) -> str:
    """What scores depend on beside the models: conversations under another protocol are not compared with these."""
    return f"max_turns={section.max_turns} stop_rule={STOP_RULE} simulator_prompt={SIMULATE.fingerprint[:12]}"


def make_conversation_row(
    setup: ConversationSetup, section: ConversationSection, talk: ConversationState
) -> Conversation:
    """The row of a conversation that has ended."""
    assert talk.ended is not None
    last = talk.ended.unanswered
    return Conversation(
        conversation_id=conversation_id(setup, section),
        chat_seed_id=setup.seed.chat_seed_id,
        pool=setup.seed.pool,
        target=setup.target,
        simulator=section.simulator,
        sample=setup.sample,
        persona_to_target=section.persona_to_target,
        protocol=name_protocol(section),
        t_actual=talk.answered,
        stop_reason=talk.ended.stop_reason,
        fault=talk.ended.fault,
        final_user_text=last.text if last else None,
        final_progress=last.progress if last else None,
        final_label_reasks=talk.ended.label_reasks,
        final_role_breaks=talk.ended.role_breaks,
        final_guards=list(talk.ended.guards),
    )


def make_turn_rows(
    setup: ConversationSetup, section: ConversationSection, talk: ConversationState
) -> list[ConversationTurn]:
    """One row for every turn that the target was to answer, in order."""
    found = conversation_id(setup, section)
    return [
        _make_turn_row(found, index, turn, _find_answer_guards(setup, talk.turns[:index]))
        for index, turn in enumerate(talk.turns, start=1)
    ]


def _find_answer_guards(setup: ConversationSetup, turns: Sequence[Turn]) -> tuple[str, ...]:
    """The guards that fire on the last answer; none where there is none."""
    *before, last = (turn.answer for turn in turns)
    if last is None:
        return ()
    voice = Voice(setup.seed.language, ASSISTANT_NAMES, ANSWER.sentences(setup.seed.language))
    return find_guards(last, voice, [answer for answer in before if answer is not None])


def _make_turn_row(found: str, index: int, turn: Turn, answer_guards: Sequence[str]) -> ConversationTurn:
    prediction = turn.prediction
    assert prediction is not None
    return ConversationTurn(
        conversation_id=found,
        turn_index=index,
        user_text=turn.user.text,
        gold_explicit=turn.user.gold.explicit,
        gold_latent=turn.user.gold.latent,
        gold_emotion=turn.user.gold.emotion,
        progress=turn.user.progress,
        predicted_explicit=prediction.explicit,
        predicted_latent=prediction.latent,
        predicted_emotion=prediction.emotion,
        perception_fault=prediction.lost,
        assistant_text=turn.answer,
        label_reasks=turn.user.label_reasks,
        role_breaks=turn.user.role_breaks,
        user_guards=list(turn.user.guards),
        answer_guards=list(answer_guards),
    )
