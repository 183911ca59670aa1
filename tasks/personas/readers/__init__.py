"""Readers of source personas, one for each kind of source: all hand over `Persona`s and a tally of the rows."""

from __future__ import annotations

from tasks.personas.readers.mapped import read_mapped
from tasks.personas.readers.nemotron import read_nemotron
from tasks.personas.readers.personamem import read_personamem

READERS = {"nemotron": read_nemotron, "personamem": read_personamem, "mapped": read_mapped}
