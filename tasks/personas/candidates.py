"""The rows of `persona_candidates`, made batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tasks.foundation.settings.sections import PersonaSource
from tasks.foundation.tables import TABLES
from tasks.personas.pieces import PieceCounter
from tasks.personas.reading import Persona, Reading
from tasks.personas.stratify import stratum_of

CANDIDATES = TABLES["persona_candidates"]
AS_READ = [name for name in CANDIDATES.columns if name in Persona.__dataclass_fields__]
STRATUM_COLUMNS = {
    "personamem": ("topic_tags", "interaction_length_bucket"),
    "nemotron": ("occupation_group", "age_bucket"),
    "mapped": ("occupation_group", "age_bucket"),
}
"""What the pool of a reader is stratified by; of a list its first entry."""


def candidate_batch(
    personas: Sequence[Persona], reading: Reading, source: PersonaSource, pieces: PieceCounter
) -> pa.RecordBatch:
    """The candidates of some personas of one source, in their order."""
    columns = {name: [getattr(persona, name) for persona in personas] for name in AS_READ}
    columns["big_five"] = [each and each.model_dump() for each in columns["big_five"]]
    columns["persona_id"] = [reading.persona_id(persona.source_key) for persona in personas]
    columns["stratum"] = strata_of(columns, source)
    columns["token_count"] = pieces.count([persona.description for persona in personas])
    columns["pool"] = [source.pool] * len(personas)
    columns["licence"] = [source.licence] * len(personas)
    return CANDIDATES.batch(columns)


def strata_of(columns: Mapping[str, Sequence[Any]], source: PersonaSource) -> list[str]:
    """The stratum of each candidate: primary topic × length bucket for PersonaMem, occupation group × age bucket for
    all others."""
    parts_of_each = zip(*(columns[name] for name in STRATUM_COLUMNS[source.reader]), strict=True)
    return [stratum_of([_first(part) for part in parts]) for parts in parts_of_each]


def _first(part: str | Sequence[str] | None) -> str | None:
    return part if isinstance(part, str | None) else next(iter(part), None)
