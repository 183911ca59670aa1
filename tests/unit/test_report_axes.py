"""Axes by the scale of the unit: a hardly visible difference stays one, and everything drawn is on the axis."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.report import charts
from tasks.report.axes import LEAST_PART, SCALES, choose_axis, choose_difference_axis


@pytest.mark.parametrize(
    ("unit", "values", "ends", "axis"),
    [
        ("0-10", [6.0, 6.1], [6.0, 6.1], (4.8, 7.3)),  # 2.5 around 6.05
        ("0-10", [9.9, 10.0], [9.9, 10.0], (7.5, 10.0)),  # no further than the scale
        ("share", [0.01, 0.02], [], (0.0, 0.25)),
        ("0-100", [20.0, 60.0], [10.0, 90.0], (10.0, 90.0)),  # more than a quarter: as wide as the intervals
        ("share", [0.5, 0.5], [0.4, 0.6], (0.0, 1.0)),  # no difference: the whole scale
        ("rho", [0.1], [], (-1.0, 1.0)),
        ("cosine", [1.2], [1.1, 1.4], (0.0, 1.4)),  # opposite texts
        ("cosine", [0.9, 1.2], [], (0.9, 1.2)),
    ],
)
def test_an_axis_shows_a_quarter_of_the_scale_or_more(
    unit: str, values: list[float], ends: list[float], axis: tuple[float, float]
) -> None:
    assert choose_axis(unit, values, ends) == pytest.approx(axis)


@pytest.mark.parametrize(
    ("values", "axis"),
    [
        ([0.5], (-1.0, 1.5)),  # 2.5 around the middle of 0 and 0.5
        ([-0.5], (-1.5, 1.0)),
        ([4.0], (0.0, 4.0)),
        ([-9.0, 9.0], (-9.0, 9.0)),
    ],
)
def test_an_axis_of_differences_holds_0(values: list[float], axis: tuple[float, float]) -> None:
    assert choose_difference_axis("0-10", values, values) == pytest.approx(axis)


def test_a_unit_without_a_scale_has_no_such_axis() -> None:
    assert choose_axis("turns", [2.0, 3.0], []) is None
    assert choose_difference_axis("turns", [2.0], []) is None


@given(st.sampled_from(sorted(SCALES)), st.lists(st.floats(0, 1), min_size=1), st.booleans())
def test_everything_is_on_the_axis_and_the_axis_on_the_scale(unit: str, parts: list[float], apart: bool) -> None:
    low, high = SCALES[unit]
    values = [low + part * (high - low) for part in parts]
    axis = (choose_difference_axis if apart else choose_axis)(unit, values, values)
    assert axis is not None
    start, end = axis
    slack = 1e-9 * (high - low)
    assert start <= min(values) + slack
    assert end >= max(values) - slack
    assert end - start >= LEAST_PART * (high - low) - slack
    assert (low - high if apart else low) - slack <= start
    assert end <= high + slack


def domains(records: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[Any]:
    """The domains of the horizontal axes that a chart of the records is drawn with."""
    drawn: list[dict[str, Any]] = []
    convert = charts.vl_convert.vegalite_to_svg

    def watched(spec: Any, *arguments: Any, **named: Any) -> str:
        drawn.append(json.loads(spec) if isinstance(spec, str) else spec)
        return convert(spec, *arguments, **named)

    monkeypatch.setattr(charts.vl_convert, "vegalite_to_svg", watched)
    assert charts.estimates("c", records, {"ficr": "FICR"}, **options) is not None
    (panel,) = drawn[0]["concat"]
    return [layer["encoding"]["x"]["scale"].get("domain") for layer in panel["layer"]]


def test_a_chart_of_estimates_is_drawn_on_its_units_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {"metric": "ficr", "unit": "share", "ci_low": None, "ci_high": None}
    records = [{**plain, "target": "a", "value": 0.5}, {**plain, "target": "b", "value": 0.5004}]
    assert domains(records, monkeypatch) == [pytest.approx([0.3752, 0.6252])] * 2
    assert domains(records[:1], monkeypatch, differences=True) == [[0.0, 0.5]] * 3
    unknown = [{**one, "unit": "turns"} for one in records]
    assert domains(unknown, monkeypatch) == [None, None]
