"""Which conversations a judge sees when it is to see only some. Pure.

>>> stratified({"a": ("p", "x"), "b": ("p", "x"), "c": ("p", "y")}, 2, seed=1)[-1] in ("a", "b", "c")
True
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from tasks.foundation.ids import seeded_order


def draw_stratified(cells: Mapping[str, tuple[str, ...]], n: int, seed: int, n_cells: int | None = None) -> list[str]:
    """At most `n` ids, spread evenly over their cells (`cells`: the cell of each id), or over `n_cells` of these.

    Cells and the ids within them come in seeded orders that do not depend on row order; one id of each cell
    is taken in turn, cells that run out are passed over. A larger `n` holds the smaller sample.
    """
    members: dict[tuple[str, ...], list[str]] = {}
    for one, cell in cells.items():
        members.setdefault(cell, []).append(one)
    names = list(members)
    order = [names[place] for place in seeded_order(["/".join(name) for name in names], seed, "cells")]
    queues = [
        [members[cell][place] for place in seeded_order(members[cell], seed, "members")] for cell in order[:n_cells]
    ]
    taken = [one for layer in zip_longest(*queues) for one in layer if one is not None]
    return taken[:n]
