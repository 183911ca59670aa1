"""Charts as inline SVG: drawn once, offline, in colours that follow the page.

Colours are CSS variables of the page (`--ink`, `--series-1` …), so one drawing serves light and dark. The
series are told apart by people with colour-blindness (after Okabe and Ito), and every chart's numbers also
stand in a table.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import altair as alt
import vl_convert

from tasks.report import axes, numbers
from tasks.report.blocks import Figure
from tasks.report.questions import Record

SERIES = tuple(f"var(--series-{place})" for place in range(1, 9))
SHAPES = (
    *("circle", "square", "triangle-up", "cross", "diamond"),
    *("triangle-right", "triangle-down", "triangle-left"),
)
INK, MUTED, LINE = "var(--ink)", "var(--muted)", "var(--line)"
NEUTRAL, BAD = "var(--series-neutral)", "var(--series-bad)"

FONT = "Arial, Liberation Sans, Helvetica, sans-serif"
"""One whose widths the drawing knows; a page that has none of them draws a little wider, into the padding."""

PADDING = {"left": 22, "right": 10, "top": 4, "bottom": 4}
WIDTH = 560
HALF = 330
"""Two such charts and their labels stand side by side."""
ROW = 22
MOST_BARS = 20
MOST_TICKS = 12
LONGEST_LABEL = 34
EDGE = 9
"""Pixels between an axis' ends and what is drawn, so that no mark runs into a name."""
CELL = 26
"""Pixels of a square of a heat map."""
_WORDY = [
    (re.compile(wordy), kept)
    for wordy, kept in (
        (r'\s(role|aria-[a-z]+|class|pointer-events|stroke-miterlimit|font-family)="[^"]*"', ""),
        (r' transform="translate\(0,0\)"', ""),
        (r' opacity="1"', ""),
        (r' (x1|y1|x2|y2)="0"', ""),
        (r'<path d="M0,0h0v0h0Z"/>', ""),
        (r'<path d="" display="none"/>', ""),
    )
]
_MARK = re.compile(r'<path transform="translate\(([-\d.]+),([-\d.]+)\)" d="(M[-MLAZ\d.,]+)"[^>]*/>')
_RUN = re.compile(
    r'<path transform="translate\([-\d.]+,[-\d.]+\)" d="(?P<shape>M[-LAZ\d.,]+)"(?P<how>(?:(?!opacity)[^>])*)/>'
    r'(?:<path transform="translate\([-\d.]+,[-\d.]+\)" d="(?P=shape)"(?P=how)/>)+'
)
MOST_SAID = 60
"""Values that a chart's description names one by one."""
FEW = 2
"""Bars that all stand for so little or less are not drawn."""

_CONFIG: dict[str, Any] = {
    "background": None,
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "domainColor": LINE,
        "tickColor": LINE,
        "gridColor": LINE,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 260,
        "labelPadding": 5,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": MUTED,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "orient": "top",
        "symbolType": "square",
        "labelLimit": 260,
    },
    "header": {
        "labelColor": INK,
        "titleColor": MUTED,
        "labelFontSize": 12,
        "labelFontWeight": 600,
        "title": None,
        "labelAnchor": "start",
    },
    "facet": {"spacing": 18},
    "range": {"category": list(SERIES)},
}


def tells_something(counts: Iterable[float | None]) -> bool:
    """Whether bars for these counts say more than their table: two or more, not all of them of next to nothing."""
    there = [count for count in counts if count]
    return len(there) > 1 and max(there) > FEW


def shares(
    caption: str, records: Sequence[Record], category: str, parts: Mapping[str, str], unit: str
) -> Figure | None:
    """A full-width bar for each category, split into `parts` (column → colour), in the order of the records; None for
    bars that tell nothing."""
    kept = [record for record in records if sum(record[part] or 0 for part in parts)]
    if not tells_something(record[part] for record in kept for part in parts):
        return None
    names = _names(record[category] for record in kept)
    values = [
        {"category": names[record[category]], "part": part.replace("_", " "), "n": record[part], "place": place}
        for record in kept
        for place, part in enumerate(parts)
    ]
    legend = [part.replace("_", " ") for part in parts]
    chart = (
        alt.Chart(alt.Data(values=values))
        .mark_bar(size=ROW * 0.64)
        .encode(
            x=alt.X("n:Q", stack="normalize", title=f"share of {unit}", axis=alt.Axis(format="%", grid=False)),
            y=alt.Y("category:N", sort=_order(values, "category"), title=None),
            color=alt.Color("part:N", scale=alt.Scale(domain=legend, range=list(parts.values())), title=None),
            order=alt.Order("place:Q"),
        )
        .properties(width=WIDTH, height=_height(len(kept)))
    )
    said = "; ".join(
        f"{record[category]}: " + ", ".join(f"{part.replace('_', ' ')} {record[part]}" for part in parts)
        for record in kept
    )
    return _figure(caption, chart, said)


def bars(caption: str, records: Sequence[Record], category: str, series: Mapping[str, str], unit: str) -> Figure | None:
    """Horizontal bars, one for each series (column → its name) and category; at most `MOST_BARS` categories.

    What is not known is not drawn; None for bars that tell nothing.
    """
    kept = records[:MOST_BARS]
    if not tells_something(record[column] for record in kept for column in series):
        return None
    categories = _names(record[category] for record in kept)
    values = [
        {"category": categories[record[category]], "series": name, "n": record[column]}
        for record in kept
        for column, name in series.items()
        if record[column] is not None
    ]
    names = list(series.values())
    most = max(record[column] or 0 for record in kept for column in series)
    axis = alt.Axis(tickCount=6) if most > 6 else alt.Axis(values=list(range(int(most) + 1)), format="d")
    colours = alt.Scale(domain=names, range=list(SERIES[: len(names)]))
    legend = alt.Legend() if len(names) > 1 else None
    chart = (
        alt.Chart(alt.Data(values=values))
        .mark_bar()
        .encode(
            x=alt.X("n:Q", title=unit, axis=axis),
            y=alt.Y("category:N", sort=_order(values, "category"), title=None, scale=alt.Scale(paddingInner=0.25)),
            yOffset=alt.YOffset("series:N", sort=names),
            color=alt.Color("series:N", scale=colours, legend=legend, title=None),
        )
        .properties(width=HALF, height=_height(len(kept), max(1.0, 0.62 * len(names))))
    )
    left = len(records) - len(kept)
    more = f" {numbers.plural(left, 'rarer value is', 'rarer values are')} in the table." if left else ""
    said = "; ".join(
        f"{record[category]}: " + ", ".join(f"{name} {_known(record[column])}" for column, name in series.items())
        for record in kept
    )
    return _figure(caption + more, chart, said)


def ranges(caption: str, records: Sequence[Record], category: str, panels: Mapping[str, str]) -> Figure | None:
    """A bar from `<panel>_low` to `<panel>_high` and a mark at `<panel>`, on a logarithmic scale, for each panel
    (column → title) and record; the mark of a value outside its bar stands out. What is not known is not drawn."""
    names = _names(record[category] for record in records)
    shown = [panel for panel in panels if any(record[f"{panel}_high"] for record in records)]
    if not shown:
        return None
    drawn = [_ranges(panels[panel], records, panel, category, names, place == 0) for place, panel in enumerate(shown)]
    said = "; ".join(
        f"{panels[panel]}, {record[category]}: planned {_known(record[f'{panel}_low'])} to "
        f"{_known(record[f'{panel}_high'])}, actual {_known(record[panel])}"
        for panel in shown
        for record in records
    )
    return _figure(caption, alt.concat(*drawn, columns=3, spacing=14), said)


def _ranges(
    title: str, records: Sequence[Record], panel: str, category: str, names: Mapping[Any, str], labelled: bool
) -> Any:
    known = [record for record in records if record[f"{panel}_high"]]
    ends = [record[f"{panel}{end}"] for record in known for end in ("_low", "_high", "")]
    least = 10 ** math.floor(math.log10(min(value for value in ends if value)))
    order = list(names.values())
    axis = alt.Axis(grid=True, domain=False, ticks=False, labels=labelled)
    y = alt.Y("category:N", sort=order, title=None, scale=alt.Scale(domain=order), axis=axis)
    scale = alt.Scale(type="log", nice=False, domainMin=least, padding=EDGE)
    form = "~s" if least >= 1 else "~g"
    x = alt.X("low:Q", title=None, scale=scale, axis=alt.Axis(tickCount=4, format=form, grid=False, labelOverlap=True))
    bars = [
        {"category": names[one[category]], "low": max(one[f"{panel}_low"], least), "high": one[f"{panel}_high"]}
        for one in known
    ]
    marks = [
        {
            "category": names[one[category]],
            "low": max(one[panel], least),
            "fits": one[f"{panel}_low"] <= one[panel] <= one[f"{panel}_high"],
        }
        for one in known
        if one[panel] is not None
    ]
    colour = alt.Color("fits:N", scale=alt.Scale(domain=[True, False], range=[SERIES[0], BAD]), legend=None)
    bar = alt.Chart(alt.Data(values=bars)).mark_bar(color=NEUTRAL, size=ROW * 0.4).encode(x=x, x2="high:Q", y=y)
    mark = alt.Chart(alt.Data(values=marks)).mark_point(filled=True, opacity=1, size=60).encode(x=x, y=y, color=colour)
    heading = alt.TitleParams(title, anchor="start", fontSize=12, fontWeight=600, color=INK, offset=6)
    return alt.layer(bar, mark).properties(width=178, height=_height(len(order)), title=heading)


def estimates(
    caption: str,
    records: Sequence[Record],
    panels: Mapping[str, str],
    order: Sequence[str] = (),
    *,
    columns: int = 3,
    differences: bool = False,
) -> Figure | None:
    """Values with their intervals, a panel for each metric (name → title) and a row for each target; of `differences`
    with a line at 0.

    Records have `metric`, `unit`, `target`, `value`, `ci_low` and `ci_high`; rows stand in the given order of targets,
    others after them in that of the first panel.
    """
    kept = [record for record in records if record["metric"] in panels and record["value"] is not None]
    if not kept:
        return None
    first = next(metric for metric in panels if any(record["metric"] == metric for record in kept))
    there = [record["target"] for record in [*_best_first(kept, first), *kept]]
    names = _names([*(target for target in order if target in there), *there])
    shown = [metric for metric in panels if any(record["metric"] == metric for record in kept)]
    drawn = [
        _panel(
            panels[metric],
            [record for record in kept if record["metric"] == metric],
            names,
            labelled=place % columns == 0,
            differences=differences,
        )
        for place, metric in enumerate(shown)
    ]
    chart = alt.concat(*drawn, columns=columns, spacing=14)
    said = "; ".join(
        f"{panels[record['metric']]}, {record['target']}: {record['value']:.3g}"
        for record in sorted(kept, key=lambda record: shown.index(record["metric"]))
    )
    return _figure(caption, chart, said)


def _panel(
    title: str, records: Sequence[Record], names: Mapping[Any, str], *, labelled: bool, differences: bool
) -> Any:
    values = [
        {
            "target": names[record["target"]],
            "value": record["value"],
            "low": record["value"] if record["ci_low"] is None else record["ci_low"],
            "high": record["value"] if record["ci_high"] is None else record["ci_high"],
        }
        for record in records
    ]
    base = alt.Chart(alt.Data(values=values))
    order = list(names.values())
    rows = alt.Axis(grid=True, domain=False, ticks=False, labels=labelled)
    y = alt.Y("target:N", sort=order, title=None, scale=alt.Scale(domain=order), axis=rows)
    scale = _scale(records[0]["unit"], values, differences=differences)
    axis = alt.Axis(tickCount=4, grid=False)
    low, value, zero = (alt.X(f"{name}:Q", title=None, scale=scale, axis=axis) for name in ("low", "value", "zero"))
    rule = base.mark_rule(color=SERIES[0], strokeWidth=2).encode(x=low, x2="high:Q", y=y)
    point = base.mark_point(color=SERIES[0], fill=SERIES[0], opacity=1, size=55).encode(x=value, y=y)
    heading = alt.TitleParams(title, anchor="start", fontSize=12, fontWeight=600, color=INK, offset=6)
    at_zero = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color=MUTED, strokeDash=[3, 3]).encode(x=zero)
    layers = [at_zero, rule, point] if differences else [rule, point]
    return alt.layer(*layers).properties(width=178, height=_height(len(order)), title=heading)


def _scale(unit: str, values: Sequence[Record], *, differences: bool = False) -> alt.Scale:
    """The scale of `value`, with intervals from `low` to `high`: by the unit's, else as the values are."""
    found = [one["value"] for one in values]
    ends = [one[end] for one in values for end in ("low", "high")]
    domain = (axes.choose_difference_axis if differences else axes.choose_axis)(unit, found, ends)
    if domain is None:
        return alt.Scale(zero=differences or len(set(found)) < 2, nice=True, padding=EDGE)
    return alt.Scale(domain=list(domain), zero=False, nice=False, padding=EDGE)


def _best_first(records: Sequence[Record], metric: str) -> list[Record]:
    return sorted((one for one in records if one["metric"] == metric), key=lambda one: -one["value"])


def histograms(caption: str, records: Sequence[Record], titles: Mapping[str, str], series: Mapping[str, str]) -> Figure:
    """Two distributions over one another, a small panel for each record; the shares of a record's columns `series`
    (column → name) in the bins between its `edges`. `titles`: of each `measure`."""
    colours = alt.Scale(domain=list(series.values()), range=[SERIES[0], SERIES[2]])
    drawn = [_histogram(record, titles[record["measure"]], series, colours) for record in records]
    means = "; ".join(
        f"{titles[record['measure']]}: mean {record['mean_simulated']:.3g} and {record['mean_real']:.3g}"
        for record in records
    )
    return _figure(caption, alt.concat(*drawn, columns=3, spacing=14), means)


def _histogram(record: Record, title: str, series: Mapping[str, str], colours: alt.Scale) -> Any:
    edges = record["edges"]
    values = [
        {"low": low, "high": high, "share": share, "series": name}
        for column, name in series.items()
        for low, high, share in zip(edges, edges[1:], record[column], strict=False)
    ]
    yes_or_no = len(edges) == 3
    axis = alt.Axis(values=[0, 1], format="d", grid=False) if yes_or_no else alt.Axis(tickCount=4, grid=False)
    heading = alt.TitleParams(title, anchor="start", fontSize=12, fontWeight=600, color=INK, offset=6)
    return (
        alt.Chart(alt.Data(values=values))
        .mark_bar(opacity=0.5)
        .encode(
            x=alt.X("low:Q", title=None, axis=axis, scale=alt.Scale(zero=False, nice=False)),
            x2="high:Q",
            y=alt.Y("share:Q", title=None, stack=None, axis=alt.Axis(format="%", tickCount=3)),
            color=alt.Color("series:N", scale=colours, title=None),
        )
        .properties(width=160, height=90, title=heading)
    )


def lines(caption: str, records: Sequence[Record], x: str, panels: Mapping[str, str], unit: str) -> Figure | None:
    """A line for each target over the column `x` (integers), a panel for each metric (name → title), all of one
    unit."""
    kept = [record for record in records if record["metric"] in panels and record["value"] is not None]
    if len({record[x] for record in kept}) < 2:
        return None
    targets = sorted({record["target"] for record in kept})
    values = [
        {"panel": panels[one["metric"]], "target": one["target"], "x": one[x], "value": one["value"]} for one in kept
    ]
    scale = _scale(unit, [{**one, "low": one["value"], "high": one["value"]} for one in values])
    across = alt.Axis(format="d", grid=False, **_whole_ticks(record[x] for record in kept))
    told: dict[str, Any] = {"title": None, "legend": alt.Legend(columns=len(SERIES))}
    encoded = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("x:Q", title=x, scale=alt.Scale(zero=False, nice=False, padding=EDGE), axis=across),
        y=alt.Y("value:Q", title=numbers.scale(unit), scale=scale, axis=alt.Axis(tickCount=5)),
        color=alt.Color("target:N", scale=alt.Scale(domain=targets, range=_colours(targets)), **told),
        shape=alt.Shape("target:N", scale=alt.Scale(domain=targets, range=_shapes(targets)), **told),
    )
    layers = alt.layer(encoded.mark_line(strokeWidth=2), encoded.mark_point(filled=True, opacity=1, size=45))
    chart = layers.properties(width=200, height=170).facet(
        facet=alt.Facet("panel:N", sort=list(panels.values()), header=alt.Header(title=None)), columns=3
    )
    return _figure(caption, chart, _say_lines(values, x))


def _say_lines(values: Sequence[Mapping[str, Any]], x: str) -> str:
    """Every value, or, of more than anybody listens to, the first and last of each line."""
    along: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in values:
        along.setdefault((one["panel"], one["target"]), []).append(one)
    said = []
    for (panel, target), points in along.items():
        points = sorted(points, key=lambda one: int(one["x"]))
        told = points if len(values) <= MOST_SAID else [points[0], points[-1]][: len(points)]
        said.append(f"{panel}, {target}, " + ", ".join(f"{x} {one['x']}: {one['value']:.1f}" for one in told))
    return "; ".join(said)


def heatmap(caption: str, records: Sequence[Record], row: str, column: str, value: str, title: str) -> Figure | None:
    """A square for each two labels, darker for more, with its number; None for more labels than fit, and where every
    row has one square only."""
    there = [record for record in records if record[value]]
    rows = _names(record[row] for record in records)
    columns = _names(record[column] for record in sorted(records, key=lambda one: str(one[column])))
    if max(len(rows), len(columns)) > MOST_BARS or len(there) <= len(rows):
        return None
    labels, across = list(rows.values()), list(columns.values())
    values = [{"row": rows[one[row]], "column": columns[one[column]], "n": one[value]} for one in there]
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("column:N", sort=across, title=column, axis=alt.Axis(labelAngle=-40, domain=False)),
        y=alt.Y("row:N", sort=labels, title=row, axis=alt.Axis(domain=False)),
    )
    shade = alt.Opacity("n:Q", scale=alt.Scale(domain=[0, 100], range=[0.05, 0.6]), legend=None)
    squares = base.mark_rect(color=SERIES[0]).encode(opacity=shade)
    text = base.mark_text(fontSize=10, color=INK).encode(text=alt.Text("n:Q", format=".0f"))
    heading = alt.TitleParams(title, anchor="start", fontSize=12, fontWeight=600, color=INK, offset=6)
    chart = alt.layer(squares, text).properties(width=CELL * len(across), height=CELL * len(labels), title=heading)
    said = "; ".join(f"{one[row]} as {one[column]}: {one[value]:.0f} %" for one in there)
    return _figure(caption, chart, said)


def scatter(caption: str, records: Sequence[Record], x: str, y: str, labels: Mapping[str, str]) -> Figure | None:
    """A named point for each target; `labels` are the titles of both axes. None for fewer than three."""
    known = [record for record in records if record[x] is not None and record[y] is not None]
    if len(known) < 3:
        return None
    values = [{"target": _short(one["target"]), "x": one[x], "y": one[y]} for one in known]
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("x:Q", title=labels[x], scale=alt.Scale(zero=False, padding=EDGE * 3), axis=alt.Axis(grid=False)),
        y=alt.Y("y:Q", title=labels[y], scale=alt.Scale(zero=False, padding=EDGE * 2)),
    )
    points = base.mark_point(filled=True, size=60, color=SERIES[0], opacity=1)
    names = base.mark_text(align="left", dx=7, fontSize=11, color=INK).encode(text="target:N")
    chart = alt.layer(points, names).properties(width=WIDTH, height=240)
    said = "; ".join(f"{one['target']}: {labels[x]} {one['x']:.3g}, {labels[y]} {one['y']:.3g}" for one in values)
    return _figure(caption, chart, said)


def histogram(caption: str, records: Sequence[Record], group: str, series: Mapping[str, str]) -> Figure | None:
    """Counts by bin (`tokens_from` to `tokens_below`), one panel for each value of `group`; series overlap."""
    if not tells_something(record[column] for record in records for column in series):
        return None
    values = [
        {
            "panel": record[group],
            "from": record["tokens_from"],
            "to": record["tokens_below"],
            "n": record[column],
            "series": name,
        }
        for record in records
        for column, name in series.items()
    ]
    names = list(series.values())
    chart = (
        alt.Chart(alt.Data(values=values))
        .mark_bar(opacity=0.8)
        .encode(
            x=alt.X(
                "from:Q", title="word pieces", bin="binned", axis=alt.Axis(grid=False, tickMinStep=32, tickCount=6)
            ),
            x2="to:Q",
            y=alt.Y("n:Q", title="personas", stack=None, axis=alt.Axis(tickCount=4, tickMinStep=1)),
            color=alt.Color("series:N", scale=alt.Scale(domain=names, range=list(SERIES[: len(names)])), title=None),
        )
        .properties(width=250, height=130)
        .facet(facet=alt.Facet("panel:N", header=alt.Header(title=None)), columns=2)
        .resolve_scale(y="independent", x="independent")
    )
    said = "; ".join(
        f"{one[group]}, {one['tokens_from']} to {one['tokens_below']} word pieces: "
        + ", ".join(f"{name} {one[column]}" for column, name in series.items())
        for one in records
    )
    return _figure(caption, chart, said)


def _figure(caption: str, chart: Any, description: str) -> Figure:
    spec = chart.to_dict(validate=False)
    spec["config"] = _CONFIG
    spec["padding"] = PADDING
    svg, width = inline_svg(_drawn(json.dumps(spec)))
    return Figure(caption, svg, description, width)


@lru_cache(maxsize=256)
def _drawn(spec: str) -> str:
    return vl_convert.vegalite_to_svg(spec)


def inline_svg(svg: str) -> tuple[str, int]:
    """An SVG document as part of a page: hidden from readers of speech (the figure says it all), scaled to the
    width of its box, without namespaces and sizes; and its own width in pixels."""
    head, rest = re.match(r"(<svg\b[^>]*>)(.*)", svg, re.DOTALL).groups()  # type: ignore[union-attr]
    box = re.search(r'viewBox="([^"]+)"', head)
    assert box is not None
    plain = _shorten(rest)
    return f'<svg viewBox="{box[1]}" aria-hidden="true" focusable="false">{plain}', round(float(box[1].split()[2]))


def _shorten(svg: str) -> str:
    """The drawing without what only its maker needs: roles, classes, one font a text, digits that nobody can see."""
    for wordy, kept in _WORDY:
        svg = wordy.sub(kept, svg)
    rounded = re.sub(r"-?\d+\.\d{2,}", lambda found: _write(float(found[0])), svg)
    return _RUN.sub(_join_marks, rounded)


def _join_marks(run: re.Match[str]) -> str:
    """Marks of one shape and colour that follow each other, as one path."""
    marks = _MARK.findall(run[0])
    (x, y), rest = _relative(marks[0][2])
    starts = (f"M{_write(float(across) + x)},{_write(float(down) + y)}" for across, down, *_ in marks)
    return f'<path d="{"".join(start + rest for start in starts)}"{run["how"]}/>'


def _relative(shape: str) -> tuple[tuple[float, float], str]:
    """Where a path of one piece (M, L, A, Z) begins, and the rest of it told from there."""
    at: tuple[float, float] = (0.0, 0.0)
    begins, rest = at, ""
    for command, written in re.findall(r"([MLAZ])([^MLAZ]*)", shape):
        *how, x, y = [float(number) for number in written.split(",")] if written else (0.0, 0.0)
        if command == "M":
            begins = (x, y)
        elif command == "Z":
            rest += "z"
            continue
        else:
            rest += command.lower() + ",".join(_write(number) for number in (*how, x - at[0], y - at[1]))
        at = (x, y)
    return begins, rest


def _write(number: float) -> str:
    """With a tenth, if it has any."""
    written = f"{number:.1f}".removesuffix(".0")
    return "0" if written == "-0" else written


def _whole_ticks(values: Iterable[int]) -> dict[str, Any]:
    """Every integer that occurs where there are few, else at whole steps: never the same label twice."""
    there = sorted(set(values))
    return {"values": there} if len(there) <= MOST_TICKS else {"tickMinStep": 1}


def _colours(names: Sequence[str]) -> list[str]:
    return [SERIES[place % len(SERIES)] for place in range(len(names))]


def _shapes(names: Sequence[str]) -> list[str]:
    """A shape for each, another one where `_colours` begins again."""
    return [SHAPES[(place + place // len(SERIES)) % len(SHAPES)] for place in range(len(names))]


def _order(values: Iterable[Mapping[str, Any]], key: str) -> list[str]:
    return list(dict.fromkeys(value[key] for value in values))


def _height(rows: int, factor: float = 1.0) -> int:
    return max(int(rows * ROW * factor), ROW)


def _known(value: Any) -> Any:
    return "not known" if value is None else value


def _names(values: Iterable[Any]) -> dict[Any, str]:
    """A label for each different value, in the order in which they come; of equal labels the later are numbered."""
    seen = Counter[str]()
    names: dict[Any, str] = {}
    for value in dict.fromkeys(values):
        label = _short(value)
        seen[label] += 1
        names[value] = label if seen[label] == 1 else f"{label} ({seen[label]})"
    return names


def _short(text: Any) -> str:
    """A label that leaves room for the bars."""
    text = "–" if text is None else str(text).replace("_", " ")
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"
