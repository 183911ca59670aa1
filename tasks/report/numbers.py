"""How numbers are written in the report; what is null is a dash, never a zero.

>>> number(0.61803, "share"), interval(0.5, 0.75, "share"), count(12034), money(None)
('0.618', '0.500 to 0.750', '12,034', 'unknown')
"""

from __future__ import annotations

from datetime import datetime

MISSING = "–"

DECIMALS: dict[str, int] = {
    "0-10": 2,
    "0-100": 1,
    "0-20": 1,
    "points": 1,
    "turns": 2,
    "pairs": 0,
}
"""Decimals by the unit of a metric; three for every other (shares, distances, correlations). A number without a
unit has three below ten and one from there on."""


def number(value: float | None, unit: str = "") -> str:
    """A measured value with the decimals of its unit; a dash for None."""
    if value is None:
        return MISSING
    digits = DECIMALS.get(unit, 3) if unit or abs(value) < 10 else 1
    return _signed(f"{value:,.{digits}f}")


def interval(low: float | None, high: float | None, unit: str = "") -> str:
    """`low to high`; empty when there is no interval."""
    return "" if low is None or high is None else f"{number(low, unit)} to {number(high, unit)}"


def count(value: int | None) -> str:
    """Thousands are set apart."""
    return MISSING if value is None else _signed(f"{value:,}")


def short(value: int) -> str:
    """In thousands or millions from there on.

    >>> short(950), short(12_340), short(2_500_000)
    ('950', '12.3k', '2.5M')
    """
    for sign, size in (("M", 1_000_000), ("k", 1000)):
        if value >= size:
            return f"{value / size:.1f}{sign}"
    return str(value)


def percent(value: float | None) -> str:
    """A number of percent, 0–100, with one decimal; the sign stands in the column's head."""
    return MISSING if value is None else _signed(f"{value:.1f}")


def money(usd: float | None) -> str:
    """US dollars, to the cent from a dollar on; `unknown` where a price is not known."""
    if usd is None:
        return "unknown"
    return f"{usd:,.2f}" if usd >= 1 or usd == 0 else f"{usd:.4f}"


def p_value(p: float | None) -> str:
    if p is None:
        return MISSING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def seconds(value: float | None) -> str:
    """`48 s`, `12 min`, `3.4 h`."""
    if value is None:
        return MISSING
    for unit, size, digits in (("h", 3600, 1), ("min", 60, 0)):
        if value >= 2 * size:
            return f"{value / size:.{digits}f} {unit}"
    return f"{value:.0f} s"


def moment(iso: str) -> str:
    """ISO 8601 with its offset → `2026-05-21 12:00 UTC`."""
    return datetime.fromisoformat(iso).strftime("%Y-%m-%d %H:%M UTC")


def words(name: str) -> str:
    """A column's or metric's name as words: `goal_achievement` → `goal achievement`."""
    return name.replace("_", " ").strip()


def scale(unit: str) -> str:
    """A unit as it is written above a column or along an axis: `0-10` → `0–10`; what has `cosine` is a distance."""
    if unit == "cosine":
        return "cosine distance"
    return unit.replace("-", "–") if unit.startswith("0-") else unit


def plural(n: int, one: str, many: str = "") -> str:
    """`1 dialogue`, `2 dialogues`."""
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def _signed(text: str) -> str:
    """With a real minus sign, and without one before a zero."""
    if text.startswith("-"):
        return text[1:] if not text.strip("-0.,") else "−" + text[1:]
    return text
