"""Writes pairings and filters some; asks no model. Reads nothing."""

from __future__ import annotations

import logging

from tasks.foundation.settings import Settings
from tasks.foundation.stage import Prepared, Stage, StageContext
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.tables.scenes import Pairing

log = logging.getLogger("tasks.toy_scenes")


def prepare(context: StageContext) -> Prepared:
    """As many pairings as `scenes.sample` says in all; one in five is left out."""
    keys = [f"row{number:03d}" for number in range(context.settings.scenes.sample.total)]
    kept = [key for number, key in enumerate(keys) if number % 5 != 4]
    rows = [Pairing(pairing_id=key, scene_id=key, character1_id="a", character2_id="b", language="en") for key in kept]
    log.info("%d rows are there", len(keys))
    log.warning("one row in five is left out")
    filtered = {"not_sampled": len(keys) - len(kept)}
    return Prepared([], {"pairings": rows}, Accounting(len(keys), len(kept), filtered, {}))


def roles(settings: Settings) -> dict[str, list[str]]:
    return {}


STAGE = Stage(name="scenes", reads=(), prepare=prepare, prepared=("pairings",), roles=roles)
