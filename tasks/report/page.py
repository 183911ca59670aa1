"""The page: facts, sections and transcripts through the templates, into one file without any reference outside.

Texts are escaped by the templates (autoescape). A content security policy in the page forbids every request
and every script but the page's own, named by its hash: a belt beside the braces.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tasks.report import numbers
from tasks.report.blocks import Section
from tasks.report.facts import Facts
from tasks.report.transcripts import Shelf

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Tile:
    """One number at the top of the page."""

    value: str
    label: str


def render(facts: Facts, tiles: Sequence[Tile], sections: Sequence[Section], shelves: Sequence[Shelf]) -> str:
    """The whole page as HTML."""
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    page = _environment().get_template("page.html.j2")
    return page.render(
        facts=facts,
        tiles=tiles,
        sections=sections,
        shelves=shelves,
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=Markup(style),
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": numbers.count,
        "moment": numbers.moment,
        "plural": numbers.plural,
        "words": numbers.words,
        "drawn": Markup,
    }
    return environment
