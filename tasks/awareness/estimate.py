"""What the awareness stage asks a target: one request for every item and sample."""

from __future__ import annotations

from tasks.awareness.prediction import prediction_of
from tasks.awareness.prompts import PROMPTS, inputs_of, reply_of
from tasks.foundation.ids import canonical_json
from tasks.foundation.planning.estimate import Ask, Estimate, Kind, Portion, View
from tasks.foundation.planning.extremes import smallest
from tasks.foundation.planning.meter import PromptSize, Reply
from tasks.foundation.planning.span import Span
from tasks.foundation.tables.dialogues import AwarenessItem
from tasks.foundation.tables.evaluation import AwarenessPrediction


def estimate(view: View) -> Estimate:
    section = view.settings.awareness
    meter, asks = view.meter(view.alias), []
    predictions: list[Portion] = []
    for portion in view.portions("awareness_items"):
        if not portion.kinds or not portion.rows.high:
            continue
        items: list[AwarenessItem] = [item for kind in portion.kinds for item in kind.both]
        prompts = [meter.messages(PROMPTS[item.task].render(item.language, inputs_of(item))) for item in items]
        replies = [meter.reply(reply_of(item.task), item.language) for item in items]
        reply = Reply(Span.around(each.schema for each in replies), min(each.least for each in replies))
        requests = portion.rows * section.samples
        asks.append(Ask(view.alias, items[0].task, requests, PromptSize.around(prompts), reply, section.max_tokens))
        predictions.append(Portion(requests, tuple(_predictions(view, kind) for kind in portion.kinds)))
    return Estimate(asks, {"awareness_predictions": predictions})


def _predictions(view: View, kind: Kind) -> Kind:
    """The smallest readable reply, and an unreadable one as long as its tokens allow."""
    item, section = kind.short, view.settings.awareness
    readable = prediction_of(item.task, smallest(reply_of(item.task), kind.language))
    key = {"item_id": item.item_id, "target": view.alias, "sample": 0}
    short = AwarenessPrediction(**key, prediction=canonical_json(readable), raw="")
    longest = view.meter(view.alias).longest_reply(section.max_tokens, view.settings.llm, kind.language)
    return Kind(kind.language, short, AwarenessPrediction(**key, prediction=None, raw=longest), item.task)
