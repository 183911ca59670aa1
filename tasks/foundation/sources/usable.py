"""Whether what a whole source gave is worth going on with."""

from __future__ import annotations

from collections.abc import Mapping

from tasks.foundation.errors import SourceError


def refuse_unusable(
    setting: str,
    name: str,
    *,
    n_in: int,
    n_usable: int,
    failed: Mapping[str, int],
    filtered: Mapping[str, int],
    first: str,
    max_failure_rate: float,
) -> None:
    """SourceError for a source of which no row, or too few, can be used. `first`: where and why the first was not."""
    n_failed = sum(failed.values())
    if n_usable and n_failed <= max_failure_rate * n_in:
        return
    told = ", ".join(f"{reason} {count:,}" for reason, count in (*failed.items(), *filtered.items()) if count)
    most = f", more than {setting}.max_failure_rate = {max_failure_rate:g} allows" if n_usable else ""
    what = f"{n_failed:,} of {n_in:,} rows cannot be read{most}" if n_failed else f"none of {n_in:,} rows is wanted"
    raise SourceError(
        f"{setting}.sources, {name}: {what} ({told}). The first, {first}. Is it the right file, with the right reader?"
    )
