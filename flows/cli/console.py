"""Where commands print their answers, and the tables they print."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

WIDE = 160


def terminal() -> Console:
    """Standard output; a file or pipe gets lines wide enough for every table. Text is shown as it is: what settings,
    files and endpoints say may hold square brackets."""
    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=WIDE)


def make_table(*columns: str, right: Collection[str] = (), title: str | None = None) -> Table:
    """A table without rows; columns named in `right` hold numbers, which are never broken."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for column in columns:
        if column in right:
            table.add_column(column, justify="right", no_wrap=True)
        else:
            table.add_column(column, overflow="fold")
    return table


def age_of(moment: str) -> str:
    """`moment` (UTC, ISO 8601) as "5 min", "3 h" or "2 d" ago."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
