"""A stratified sample with exact totals: quotas by largest remainder, short strata made good by the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasks.foundation.ids import seeded_order

UNKNOWN = "unknown"
JOINT = " × "


def quotas(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """How many to draw from each stratum: `min(total, all there are)` in all, none above its size.

    Shares are proportional to the sizes, rounded by largest remainder (ties by stratum name). What a
    stratum cannot give is shared out among the others in proportion to their sizes, until none is left.
    Works on integers: no rounding errors.

    >>> quotas({"a": 5, "b": 3, "c": 2}, 5)
    {'a': 3, 'b': 1, 'c': 1}
    """
    given = dict.fromkeys(sizes, 0)
    wanted = min(total, sum(sizes.values()))
    while (left := wanted - sum(given.values())) > 0:
        open_strata = {name: size for name, size in sizes.items() if given[name] < size}
        for name, share in _largest_remainder(open_strata, left).items():
            given[name] += min(share, sizes[name] - given[name])
    return given


def _largest_remainder(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    whole = sum(sizes.values())
    shares = {name: total * size // whole for name, size in sizes.items()}
    remainders = sorted(sizes, key=lambda name: (-(total * sizes[name] % whole), name))
    for name in remainders[: total - sum(shares.values())]:
        shares[name] += 1
    return shares


def draw(ids: Sequence[str], strata: Sequence[str], total: int, seed: int) -> tuple[list[int], dict[str, int]]:
    """Positions of a stratified sample, rank by rank, and the quota of each stratum.

    Within a stratum the first of a seeded order of ids are drawn; the ranks are a seeded shuffle of the
    whole sample, so that the first k of it are a fair sample too. Both depend on the ids only.
    """
    sizes: dict[str, int] = dict.fromkeys(sorted(set(strata)), 0)
    for stratum in strata:
        sizes[stratum] += 1
    quota = quotas(sizes, total)
    left = dict(quota)
    drawn = []
    for position in seeded_order(ids, seed, "personas.draw"):
        if left[strata[position]]:
            left[strata[position]] -= 1
            drawn.append(position)
    shuffle = seeded_order([ids[position] for position in drawn], seed, "personas.rank")
    return [drawn[place] for place in shuffle], quota


def stratum_of(parts: Sequence[str | None]) -> str:
    """The stratum's name: its parts joined, `unknown` for one that is not given.

    >>> stratum_of(["sales", None])
    'sales × unknown'
    """
    return JOINT.join(part or UNKNOWN for part in parts)
