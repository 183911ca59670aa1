"""Asks a target for the elements of finished dialogues (DEMO section 2.2.1; prompts after appendix E).

Reads awareness_items. Writes awareness_predictions. One run a target (`context.member`); one request for
each item and sample, in the item's language.

A reply that stays unreadable is an answer too: a row with the prediction null and the text in `raw`, which
the judge gets to see. Only failures that may pass later, and requests that the provider turns down without a
word (a wrong parameter, say), make the item a reject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from tasks.awareness.prediction import shape_prediction
from tasks.awareness.prompts import PROMPTS, make_inputs
from tasks.foundation.demo.records import load_rows_by
from tasks.foundation.errors import ModelError
from tasks.foundation.ids import canonical_json
from tasks.foundation.settings.sections import AwarenessSection
from tasks.foundation.stage import Asker, Prepared, Rows, Stage, StageContext
from tasks.foundation.tables.dialogues import AwarenessItem
from tasks.foundation.tables.evaluation import AwarenessPrediction


@dataclass(frozen=True, slots=True)
class ItemToAsk:
    item: AwarenessItem
    sample: int


def prepare(context: StageContext) -> Prepared:
    """Every item, once for each sample."""
    item_ids = context.read("awareness_items", columns=("item_id",))["item_id"].to_list()
    samples = range(context.settings.awareness.samples)
    return Prepared(items=[f"{item_id}/{context.member}/{sample}" for item_id in item_ids for sample in samples])


def load_items(context: StageContext, keys: Sequence[str]) -> Mapping[str, ItemToAsk]:
    wanted = {key: (key.partition("/")[0], int(key.rpartition("/")[2])) for key in keys}
    items = load_rows_by(
        context.read, "awareness_items", AwarenessItem, "item_id", (item for item, _ in wanted.values())
    )
    return {key: ItemToAsk(items[item_id], sample) for key, (item_id, sample) in wanted.items()}


async def work(context: StageContext, wanted_item: ItemToAsk, ask: Asker) -> Rows:
    """One request; what cannot be read is kept as it came."""
    assert context.member is not None
    item, section = wanted_item.item, context.settings.awareness
    try:
        reply: BaseModel = await ask(
            PROMPTS[item.task],
            make_inputs(item),
            language=item.language,
            alias=context.member,
            purpose=item.task,
            temperature=section.temperature,
            max_tokens=section.max_tokens,
            sample=wanted_item.sample,
        )
    except ModelError as error:
        if error.may_pass_later or (error.kind == "refused" and not error.text):
            raise
        prediction, raw = None, error.text or ""
    else:
        prediction, raw = canonical_json(shape_prediction(item.task, reply, item.language)), ask.last_reply
    row = AwarenessPrediction(
        item_id=item.item_id, target=context.member, sample=wanted_item.sample, prediction=prediction, raw=raw
    )
    return {"awareness_predictions": [row]}


STAGE = Stage(
    name="awareness",
    doc="Awareness items → what each target reads out of the dialogues.",
    section=AwarenessSection,
    benchmark="demo",
    reads=("awareness_items",),
    items_from={"": "awareness_items"},
    prepare=prepare,
    load_items=load_items,
    work=work,
    worked=("awareness_predictions",),
    prompts=tuple(PROMPTS.values()),
    taxonomies=(
        "gender",
        "age_band",
        "big_five",
        "level",
        "familiarity",
        "talkway",
        "sentiment",
        "utterance_emotion",
    ),
    roles=lambda settings: {"targets": settings.awareness.targets},
    fan_out="targets",
)
