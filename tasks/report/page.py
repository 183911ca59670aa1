"""The pages: facts, sections and transcripts through the templates, into files that refer to nothing but one another.

Texts are escaped by the templates (autoescape). A content security policy in the page forbids every request
and every script but the page's own, named by its hash: a belt beside the braces.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

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


def render(
    facts: Facts, tiles: Sequence[Tile], sections: Sequence[Section], shelves: Sequence[Shelf], *, single_file: bool
) -> str:
    """The report as HTML, with the transcripts in it or with links to their pages."""
    return _render(
        "page.html.j2", facts=facts, tiles=tiles, sections=sections, shelves=shelves, single_file=single_file
    )


def render_shelf(shelf: Shelf, shelves: Sequence[Shelf], build: str) -> str:
    """The page of one kind of transcripts as HTML, with links to the report and to the other kinds."""
    return _render("shelf.html.j2", shelf=shelf, shelves=shelves, build=build)


def _render(template: str, **given: Any) -> str:
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    return (
        _environment()
        .get_template(template)
        .render(
            **given,
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            style=Markup(style),
        )
    )


def make_environment(templates: Path, **options: Any) -> Environment:
    """An environment of a folder of templates that escapes every text and fails at every name it does not know."""
    return Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,
    )


@cache
def _environment() -> Environment:
    environment = make_environment(TEMPLATES)
    environment.filters |= {
        "count": numbers.count,
        "moment": numbers.moment,
        "plural": numbers.plural,
        "words": numbers.words,
        "drawn": Markup,
        "sorted_by": lambda value: f"{value:.6g}" if isinstance(value, float) else value,
    }
    return environment
