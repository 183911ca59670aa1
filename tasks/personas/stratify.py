"""A stratified sample with exact totals: quotas by largest remainder, then a seeded draw within each stratum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasks.foundation.ids import seeded_order

UNKNOWN = "unknown"
JOINT = " × "


def quotas(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """How many to draw from each stratum: `min(total, all there are)` in all, proportional to the sizes.

    Rounded by largest remainder, ties by stratum name; on integers, so without rounding errors. No stratum
    is ever short: the shares are those of the strata themselves, and a share of at most everything, rounded
    up, is at most the stratum's size. Nothing is left over to be shared out again.

    >>> quotas({"a": 5, "b": 3, "c": 2}, 5)
    {'a': 3, 'b': 1, 'c': 1}
    """
    whole = sum(sizes.values())
    total = min(total, whole)
    shares = {name: total * size // whole for name, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda name: (-(total * sizes[name] % whole), name))
    for name in by_remainder[: total - sum(shares.values())]:
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
