"""What the curation stage makes; it asks no model."""

from __future__ import annotations

from collections.abc import Mapping

from tasks.curation.gold import goal_gold, persona_gold, scene_gold, utterance_gold
from tasks.curation.settle import Labels, Settled
from tasks.curation.task import Verified, as_episode, as_item
from tasks.foundation.demo.elements import reviewed_labels
from tasks.foundation.demo.records import Record
from tasks.foundation.planning.estimate import Estimate, Kind, Portion, View
from tasks.foundation.planning.records import longest_labels, records
from tasks.foundation.planning.span import Span
from tasks.foundation.settings.sections import PerLanguage
from tasks.foundation.tables.dialogues import AwarenessItem, AwarenessTask

TASKS: tuple[AwarenessTask, ...] = ("goal", "persona", "scene", "utterance")

LEAST_STANDING = 0.5
"""Of the dialogues; a plausible least, unless `curation.if_none` expects that none stands."""


def estimate(view: View) -> Estimate:
    section = view.settings.curation
    items: list[Portion] = []
    episodes: list[Portion] = []
    for portion in view.portions("dialogues"):
        verified = {kind.language: pair for kind in portion.kinds if (pair := _verified(view, kind.language))}
        standing = _standing(view, portion.rows)
        for task in TASKS:
            kinds = (Kind.made_of(one, (_item(each, task) for each in pair), task) for one, pair in verified.items())
            items.append(Portion(_drawn(standing, section.items_per_task, verified), tuple(kinds)))
        played = (Kind.made_of(one, map(as_episode, pair)) for one, pair in verified.items())
        episodes.append(Portion(_drawn(standing, section.episodes, verified), tuple(played)))
    total = Span.total(portion.rows for portion in episodes)
    said = (
        f"the panel leaves {total.low:,.0f} to {total.high:,.0f} dialogues for the benchmark: at least "
        + ("what curation.if_none keeps" if section.keep_if_none else f"{LEAST_STANDING:.0%} of them")
        + ", at most all that curation.episodes asks for"
    )
    return Estimate(makes={"awareness_items": items, "interaction_episodes": episodes}, assumes=[said] if items else [])


def _standing(view: View, dialogues: Span) -> Span:
    """Dialogues that the panel leaves: half to all of them, or what `if_none` keeps where that is less."""
    least, kept = int(dialogues.low * LEAST_STANDING), view.settings.curation.keep_if_none
    if not kept:
        return Span(max(least, min(1, dialogues.low)), dialogues.high)
    several = len(view.portions("dialogues")) > 1
    return Span(0 if several else min(kept, dialogues.low), dialogues.high)


def _drawn(standing: Span, wanted: PerLanguage, languages: Mapping[str, object]) -> Span:
    """Of dialogues whose language is not known, one language may have all."""
    most = [wanted.of(language) for language in languages]
    return Span(min(standing.low, *most), min(standing.high, sum(most)))


def _verified(view: View, language: str) -> tuple[Verified, Verified] | None:
    found = records(view, language)
    if found is None:
        return None
    short, long = found
    return _as_written(short, reviewed_labels(short)), _as_written(long, longest_labels(long))


def _as_written(record: Record, values: Mapping[str, object]) -> Verified:
    labels: Labels = {path: Settled(value) for path, value in values.items()}
    return Verified(record, labels, labels)


def _item(one: Verified, task: AwarenessTask) -> AwarenessItem:
    match task:
        case "goal":
            return as_item(one, task, goal_gold(one.labels))
        case "persona":
            return as_item(one, task, persona_gold(one.labels))
        case "scene":
            return as_item(one, task, scene_gold(one.labels))
        case "utterance":
            return as_item(one, task, utterance_gold(one.record, one.labels, 1), 1)
