"""Readers of source personas, one for each kind of source: all hand over `Persona`s and a tally of the rows."""

from __future__ import annotations

import json

from tasks.personas.readers.mapped import read_mapped
from tasks.personas.readers.nemotron import inspire_by_row, read_nemotron
from tasks.personas.readers.personamem import inspire_by_object, read_personamem

READERS = {"nemotron": read_nemotron, "personamem": read_personamem, "mapped": read_mapped}


_INSPIRE = {"nemotron": inspire_by_row, "personamem": inspire_by_object}


def inspire(reader: str, raw: str, description: str) -> str:
    """What a persona inspires with, from its row: not who they are, where the source tells that apart; of another
    source its description."""
    return _INSPIRE[reader](json.loads(raw)) if reader in _INSPIRE else description
