"""Makes the benchmark from the verified dialogues (DEMO sections 3.1 and 3.2); asks no model.

Reads verdicts, human_reviews, dialogues, utterances, pairings, conflicts, scenes and characters. Writes
awareness_items (four tasks) and interaction_episodes. A dialogue whose goals, scene or utterance texts
were rejected is taken out, with its reason, as a reject of kind `filter`. Input rows are dialogues; one
counts as produced when an item or an episode comes of it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.curation.gold import (
    has_utterance_labels,
    list_texts,
    make_goal_gold,
    make_persona_gold,
    make_scene_gold,
    make_utterance_gold,
    write_background,
    write_dialogue,
)
from tasks.curation.sample import sample_ids, sample_utterances
from tasks.curation.settle import Labels, explain_exclusion, pick_least_rejected, restore_rejected, settle_all
from tasks.foundation.demo.elements import collect_reviewed_labels, comparison_key
from tasks.foundation.demo.records import RECORD_TABLES, WORD_SETS, Record, load_records
from tasks.foundation.errors import NothingLeft
from tasks.foundation.ids import canonical_json, content_id
from tasks.foundation.settings.sections import CurationSection
from tasks.foundation.stage import Prepared, Stage, StageContext
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.tables.dialogues import AwarenessItem, AwarenessTask, HumanReview, InteractionEpisode, Verdict
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.operations import Reject
from tasks.foundation.tables.types import Language

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VerifiedDialogue:
    """A dialogue that stays. `labels` are what gold is made of; `standing` has the original of what the panel
    rejected but the dialogue cannot do without (only where `curation.if_none` keeps it)."""

    record: Record
    labels: Labels
    standing: Labels

    @property
    def language(self) -> Language:
        return self.record.dialogue.language


def prepare(context: StageContext) -> Prepared:
    """Settles the labels, takes out what cannot stand, and draws items and episodes."""
    labels = settle_all(_read_rows(context, "verdicts", Verdict), _read_rows(context, "human_reviews", HumanReview))
    dialogue_ids = context.read("dialogues")["dialogue_id"].to_list()
    taken_out = dict(_find_excluded(dialogue_ids, labels))
    if dialogue_ids and len(taken_out) == len(dialogue_ids):
        for dialogue_id in _keep_all_the_same(context, labels, taken_out):
            del taken_out[dialogue_id]
    standing = [dialogue_id for dialogue_id in dialogue_ids if dialogue_id not in taken_out]
    verified = {
        dialogue_id: VerifiedDialogue(
            record, labels[dialogue_id], restore_rejected(labels[dialogue_id], collect_reviewed_labels(record))
        )
        for dialogue_id, record in load_records(context.read, standing).items()
    }
    items = [
        item for language in LANGUAGES for item in _draw_items(context, _select_language(language, verified), language)
    ]
    episodes = [
        episode
        for language in LANGUAGES
        for episode in _draw_episodes(context, _select_language(language, verified), language)
    ]
    used = {item.dialogue_id for item in items} | {episode.dialogue_id for episode in episodes}
    filtered = Counter(reason for reason, _ in taken_out.values())
    filtered["not_sampled"] = len(verified.keys() - used)
    return Prepared(
        items=[],
        rows={
            "awareness_items": items,
            "interaction_episodes": episodes,
            "rejects": [_make_reject(dialogue_id, sentence) for dialogue_id, (_, sentence) in taken_out.items()],
        },
        accounting=Accounting(len(dialogue_ids), len(used), {reason: n for reason, n in filtered.items() if n}),
    )


def _read_rows(context: StageContext, table: str, model: Any) -> Iterator[Any]:
    """The rows of an input table as row models; none when nobody has written it yet."""
    for row in context.read(table).iter_rows(named=True):
        yield model.model_validate({name: row[name] for name in model.model_fields})


def _find_excluded(dialogue_ids: list[str], labels: Mapping[str, Labels]) -> Iterator[tuple[str, tuple[str, str]]]:
    for dialogue_id in dialogue_ids:
        if dialogue_id not in labels:
            yield dialogue_id, ("no_verdict", "voting gave no verdict on it (see voting's own rejects)")
        elif reason := explain_exclusion(labels[dialogue_id]):
            yield dialogue_id, reason


def _keep_all_the_same(
    context: StageContext, labels: Mapping[str, Labels], taken_out: Mapping[str, tuple[str, str]]
) -> list[str]:
    """What `if_none` says where the panel takes out every dialogue: the least rejected ones, or an error."""
    keep = context.settings.curation.keep_if_none
    kept = pick_least_rejected(labels, keep)
    if not kept:
        why = Counter(reason for reason, _ in taken_out.values())
        counts = ", ".join(f"{reason} {n}" for reason, n in sorted(why.items()))
        raise NothingLeft(
            f"none of {len(taken_out)} dialogues stands ({counts}), so there is no benchmark to make. Look at "
            "`colloquy sql --file sql/reports/disputes.sql`, name stronger models in dialogues.writer and voting, or, "
            "for trying things out only, set curation.if_none to 'keep N'."
        )
    log.warning(
        "the panel takes out every dialogue; as curation.if_none says, the %d least rejected stay, their gold without "
        "the rejected labels",
        len(kept),
    )
    return kept


def _make_reject(dialogue_id: str, sentence: str) -> Reject:
    return Reject(
        stage="curation",
        row_key=dialogue_id,
        kind="filter",
        reason=f"taken out of the benchmark: {sentence}",
        retryable=False,
        attempts=0,
        payload=None,
    )


def _select_language(language: str, verified: Mapping[str, VerifiedDialogue]) -> dict[str, VerifiedDialogue]:
    return {dialogue_id: one for dialogue_id, one in verified.items() if one.language == language}


def _draw_items(
    context: StageContext, verified: Mapping[str, VerifiedDialogue], language: str
) -> Iterator[AwarenessItem]:
    seed, count = context.settings.run.seed, context.settings.curation.items_per_task.of(language)
    ids = list(verified)
    for dialogue_id in sample_ids(ids, count, seed, "goal"):
        yield make_item(verified[dialogue_id], "goal", make_goal_gold(verified[dialogue_id].labels))
    for dialogue_id in sample_ids(ids, count, seed, "persona"):
        one = verified[dialogue_id]
        yield make_item(one, "persona", make_persona_gold(one.labels, one.language))
    for dialogue_id in sample_ids(ids, count, seed, "scene"):
        one = verified[dialogue_id]
        yield make_item(one, "scene", make_scene_gold(one.labels, one.language))
    emotions = {dialogue_id: _list_emotions(one) for dialogue_id, one in verified.items()}
    for dialogue_id, turn in sample_utterances(emotions, count, seed):
        one = verified[dialogue_id]
        yield make_item(one, "utterance", make_utterance_gold(one.record, one.standing, turn), turn)


def _list_emotions(one: VerifiedDialogue) -> dict[int, str]:
    """The emotion of every turn that has labels to ask for; a rejected emotion counts as ''."""
    found = {}
    for turn in range(1, len(one.record.utterances) + 1):
        if has_utterance_labels(one.standing, turn):
            emotion = one.labels[f"utterance.{turn}.emotion"]
            found[turn] = "" if emotion.rejected else comparison_key(emotion.value)
    return found


def make_item(
    one: VerifiedDialogue, task: AwarenessTask, gold: Mapping[str, Any], turn: int | None = None
) -> AwarenessItem:
    """The row of an item."""
    dialogue = one.record.dialogue
    return AwarenessItem(
        item_id=content_id("item", dialogue.dialogue_id, task, turn),
        task=task,
        language=dialogue.language,
        dialogue_id=dialogue.dialogue_id,
        goal_type=one.record.scene.goal_type,
        dialogue_text=write_dialogue(one.record, one.standing),
        turn_index=turn,
        utterance_text=None if turn is None else list_texts(one.record, one.standing)[turn - 1],
        gold=canonical_json(gold),
        source="build",
    )


def _draw_episodes(
    context: StageContext, verified: Mapping[str, VerifiedDialogue], language: str
) -> Iterator[InteractionEpisode]:
    count = context.settings.curation.episodes.of(language)
    for dialogue_id in sample_ids(list(verified), count, context.settings.run.seed, "episode"):
        yield make_episode(verified[dialogue_id])


def make_episode(one: VerifiedDialogue) -> InteractionEpisode:
    """The row of an episode."""
    record, labels = one.record, one.standing
    return InteractionEpisode(
        episode_id=content_id("episode", record.dialogue.dialogue_id),
        language=record.dialogue.language,
        dialogue_id=record.dialogue.dialogue_id,
        speaker1=record.dialogue.speaker1,
        speaker2=record.dialogue.speaker2,
        background1=write_background(record, labels, 1),
        background2=write_background(record, labels, 2),
        goal1=labels["goal.goal1"].value,
        goal2=labels["goal.goal2"].value,
        goal_type=record.scene.goal_type,
        topic=labels["scene.topic"].value,
        time=record.scene.time,
        location=record.scene.location,
        talkway=labels["scene.talkway"].value,
        relationship=labels["scene.relationship"].value,
        familiarity=labels["scene.familiarity"].value,
        source="build",
    )


STAGE = Stage(
    name="curation",
    doc="Verdicts → the benchmark: awareness items and interaction episodes.",
    section=CurationSection,
    benchmark="demo",
    reads=("verdicts", "human_reviews", *RECORD_TABLES),
    items_from={"": "verdicts"},
    prepare=prepare,
    prepared=("awareness_items", "interaction_episodes", "rejects"),
    taxonomies=(*WORD_SETS, "utterance_emotion", "sentiment", "talkway", "goal_type"),
)
