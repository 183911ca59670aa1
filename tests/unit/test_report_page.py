"""The page: whole without a network, harmless whatever the data say, and with the numbers of the SQL."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main as cli
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.store.commits import Commit
from tasks.report import charts
from tasks.report.build import INDEX, make_pages, write_report
from tasks.report.facts import collect_facts
from tasks.report.questions import ask, rows
from tasks.report.transcripts import make_shelves, shorten
from tasks.report.transcripts.parts import make_title
from tests.contract.sql_rows import Rows, _row, good, tables_of
from tests.unit.evaluation_build import Bench, conversation, seed

HOSTILE = "</script><script>alert(1)</script><img src=http://evil.example/x onerror=alert(1)>\"'&{{ 7*7 }}\u202e\x00"

VOID = {"meta", "input", "br", "hr", "img", "link"}


class Page(HTMLParser):
    """The elements of a page, its headings, texts and scripts, and its tables as rows of (text, data-sort)."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self.tables: list[list[list[tuple[str, str | None]]]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append(("", dict(attrs).get("data-sort")))
        elif tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts[-1] += data
            return
        self.text += data
        if {"td", "th"} & set(self._open):
            text, sort = self.tables[-1][-1][-1]
            self.tables[-1][-1][-1] = (text + data, sort)

    def attributes(self) -> Iterator[tuple[str, str, str]]:
        for tag, attributes in self.elements:
            for name, value in attributes.items():
                yield tag, name, value or ""

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        found = [attributes for name, attributes in self.elements if name == tag]
        return [one for one in found if all((one.get(name) or "").split().count(x) for name, x in wanted.items())]


def full() -> Rows:
    """The good build, with two targets that were compared, and predictions and scores of DEMO."""
    rows = good()
    whole = dict.fromkeys(("pool", "language", "target", "simulator", "judge", "partner", "goal_type", "slice"))
    cell = {**whole, "n": 12, "n_unscored": 1, "n_fault": 2, "ci_low": 0.25, "ci_high": 0.75}
    for benchmark, metric, unit in (("demo", "overall_pooled", "0-10"), ("eyt", "satisfaction", "0-100")):
        for target, value in (("m3", 6.125), ("m4", 7.25)):
            named = {"benchmark": benchmark, "metric": metric, "unit": unit, "target": target, "value": value}
            rows["metrics"].append(_row("metrics", **{**cell, **named}))
        rows["comparisons"].append(
            _row(
                "comparisons",
                **{
                    **dict.fromkeys(("pool", "pool_b", "language", "judge_a", "judge_b")),
                    "kind": "best",
                    "benchmark": benchmark,
                    "metric": metric,
                    "target_a": "m4",
                    "target_b": "m3",
                    "ci_low": -0.5,
                    "ci_high": 2.0,
                },
            )
        )
        rows.setdefault("ranks", []).extend(
            _row(
                "ranks",
                **{
                    **dict.fromkeys(("pool", "language")),
                    "benchmark": benchmark,
                    "metric": metric,
                    "target": target,
                    "rank": place,
                    "rank_low": 1,
                    "rank_high": 2,
                    "may_be_best": True,
                    "n_targets": 2,
                },
            )
            for place, target in enumerate(("m4", "m3"), start=1)
        )
    rows["awareness_predictions"] = [_row("awareness_predictions", item_id="i-goal", target="m3", sample=0)]
    rows["awareness_scores"] = [_row("awareness_scores", item_id="i-goal", target="m3", sample=0)]
    rows["interaction_turns"] = [_row("interaction_turns", interaction_id="n1")]
    rows["interaction_scores"] = [_row("interaction_scores", interaction_id="n1")]
    rows["final_intent_judgements"] = [_row("final_intent_judgements", conversation_id="v1")]
    rows["models"] = [_row("models")]
    return rows


def page(rows: Rows, commits: dict[str, Commit] | None = None, transcripts: int = 100) -> Page:
    """The report with the transcripts in it."""
    with tables_of(rows) as connection:
        return Page(make_pages(connection, commits or {}, "b1", transcripts, single_file=True)[INDEX])


@pytest.fixture(scope="module")
def whole() -> Page:
    return page(full())


def commit(stage: str, member: str | None = None, **record: Any) -> Commit:
    return Commit(
        build="b1",
        stage=stage,
        member=member,
        fingerprint="f",
        revision=0,
        partial=False,
        tables={},
        drafts={},
        accounting=Accounting(3, 1, {"not_sampled": 2}),
        components={"code": "c0de" * 16},
        parents={},
        started_at="2026-05-21T12:00:00.000+00:00",
        ended_at="2026-05-21T13:00:00.000+00:00",
        ends_chain=False,
        usage={},
        record=record,
    )


def test_the_page_refers_to_nothing_outside_itself(whole: Page) -> None:
    loading = {"src", "srcset", "data", "action", "poster", "xlink:href", "background"}
    for tag, name, value in whole.attributes():
        assert name not in loading, f"{tag} {name}={value!r}"
        if name == "href":
            assert value.startswith("#"), value
        assert "http" not in value
    style = (Path(charts.__file__).parent / "templates" / "page.css").read_text(encoding="utf-8")
    assert "url(" not in style
    assert "@import" not in style
    assert not whole.all("link")


def test_every_link_of_the_navigation_leads_somewhere(whole: Page) -> None:
    ids = [attributes["id"] for _, attributes in whole.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert {attributes["href"] for attributes in whole.all("a")} <= {f"#{one}" for one in ids}


def test_only_the_pages_own_script_may_run(whole: Page) -> None:
    (policy,) = [one["content"] for one in whole.all("meta") if one.get("http-equiv")]
    (script,) = whole.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_headings_go_down_one_step_at_a_time(whole: Page) -> None:
    levels = [int(tag[1]) for tag, _ in whole.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))


def test_every_chart_says_in_words_what_it_shows(whole: Page) -> None:
    shown = whole.all("div", role="img")
    assert len(shown) == len(whole.all("svg")) > 5
    assert all(":" in (one["aria-label"] or "") for one in shown)


def test_transcripts_are_there_without_the_script(whole: Page) -> None:
    assert len(whole.all("details", **{"class": "transcript"})) == 4
    assert "hello to you" in whole.text
    assert all("hidden" in bar for bar in whole.all("div", **{"class": "filters"}))


def test_transcripts_stand_on_pages_beside_the_report_unless_asked_otherwise() -> None:
    with tables_of(full()) as connection:
        pages = {name: Page(html) for name, html in make_pages(connection, {}, "b1").items()}
        assert list(make_pages(connection, {}, "b1", single_file=True)) == [INDEX]
    assert list(pages) == [INDEX, "conversations.html", "interactions.html", "dialogues.html", "predictions.html"]
    assert not pages[INDEX].all("details", **{"class": "transcript"})
    assert "hello to you" in pages["dialogues.html"].text
    for found in pages.values():
        linked = {(one["href"] or "") for one in found.all("a")}
        assert {link for link in linked if not link.startswith("#")} <= set(pages)
        assert len(found.scripts) == 1


def test_without_conversations_none_are_linked() -> None:
    rows = full() | {"conversations": []}
    with tables_of(rows) as connection:
        pages = make_pages(connection, {}, "b1")
    assert "conversations.html" not in pages
    assert not any("conversations.html" in html for html in pages.values())


@pytest.mark.parametrize("hostile", [HOSTILE, "]]>--><svg onload=alert(1)>", "汉字 & <b>bold</b>"])
def test_hostile_text_stays_text(hostile: str) -> None:
    """Every free text of every table is replaced, the labels in charts included."""
    rows = {
        table: [{name: hostile if value == "x" else value for name, value in row.items()} for row in each]
        for table, each in full().items()
    }
    found = page(rows)
    assert len(found.scripts) == 1
    known = {(tag, name) for tag, name, _ in page(full()).attributes()}
    assert {(tag, name) for tag, name, _ in found.attributes()} <= known | {("td", "class"), ("th", "class")}
    assert not [name for _, name, _ in found.attributes() if name.startswith("on")]
    assert "{{ 7*7 }}" in found.text or hostile != HOSTILE
    assert hostile[:12] in found.text


def test_a_build_without_rows_says_what_would_fill_each_section() -> None:
    empty = page({})
    assert len(empty.all("p", **{"class": "missing"})) == 22
    assert "colloquy run --build b1" in empty.text
    assert "Nothing has been committed." in empty.text
    assert not empty.all("svg")


def test_a_leaderboard_shows_the_numbers_of_the_sql(whole: Page) -> None:
    for name in ("demo_leaderboard", "eyt_leaderboard"):
        with tables_of(full()) as connection:
            answer = ask(connection, name)
        wanted = {(one["target"], one["value"]) for one in answer.records if one["value"] is not None}
        shown = {
            (line[0][0].split()[-1], float(sort))
            for table in whole.tables
            for line in table
            for text, sort in line[1:]
            if sort is not None
        }
        assert wanted <= shown


def test_a_table_shows_the_numbers_of_the_sql(whole: Page) -> None:
    with tables_of(full()) as connection:
        answer = ask(connection, "funnel")
    wanted = [[one["rows_in"], one["produced"], one["filtered"], one["failed"]] for one in answer.records]
    shown = [
        [float(sort) for _, sort in line[2:6]]
        for table in whole.tables
        if table[0][2:3] == [("rows in", None)]
        for line in table[1:]
        if all(sort for _, sort in line[2:6])
    ]
    assert shown == wanted


def test_marks_tell_the_best_and_those_that_may_be_as_good(whole: Page) -> None:
    assert len(whole.all("td", **{"class": "best"})) == 2
    assert len(whole.all("td", **{"class": "ties"})) == 2
    assert "the places that the data leave a target" in whole.text


def test_what_thinking_and_the_persona_pool_change_is_drawn_and_listed(whole: Page) -> None:
    for words in (
        "Models that think less the same ones that do not",
        "Each target on a less the same on b",
        "Thinking less not thinking.",
    ):
        assert words in whole.text


def test_every_table_of_an_answer_shows_its_sql(whole: Page) -> None:
    boxes = whole.all("details", **{"class": "sql"})
    assert len(boxes) == len(whole.all("table", **{"class": "sortable"}))
    assert "select * from leaderboard" in whole.text


def test_what_is_not_shown_is_counted() -> None:
    rows = full()
    rows["conversations"] = [{**rows["conversations"][0], "conversation_id": f"v{n}"} for n in range(5)]
    found = page(rows, transcripts=2)
    text = " ".join(found.text.split())
    assert "2 of 5 are shown, chosen by the rank of their seed" in text
    assert "3 are left out" in text
    assert "colloquy report --build b1 --transcripts 5" in text


def test_facets_are_offered_where_there_is_a_choice() -> None:
    rows = full()
    first = rows["conversations"][0]
    rows["conversations"].append({**first, "conversation_id": "v2", "target": "m4"})
    with tables_of(rows) as connection:
        shelf = make_shelves(connection)[0]
    assert shelf.facets == [("target", ["m3", "m4"])]


def test_a_label_is_shown_beside_what_was_predicted() -> None:
    rows = full()
    turn = {**rows["conversation_turns"][0], "gold_latent": "Curiosity", "predicted_latent": "Emotional Relief"}
    rows["conversation_turns"] = [{**turn, "gold_emotion": "Hope", "predicted_emotion": None}]
    with tables_of(rows) as connection:
        line = make_shelves(connection)[0].transcripts[0].lines[0]
    shown = {label.name: (label.gold, label.found, label.right) for label in line.labels}
    assert shown["latent"] == ("Curiosity", "Emotional Relief", False)
    assert shown["emotion"] == ("Hope", "unreadable", False)
    assert shown["explicit"] == ("x", "x", True)


def test_a_judgement_is_shown_with_its_sums_and_reasons() -> None:
    rows = full()
    rows["turn_judgements"][0] |= {"reasons": '{"empathy_support": "offers help"}', "empathy_support": 1.0}
    with tables_of(rows) as connection:
        (sheet,) = make_shelves(connection)[0].transcripts[0].lines[1].sheets
    assert sheet.title == "Judged by m1: empathy 3, persona 2.5, anthropomorphic 2.5 of 5"
    assert {row.what: (row.value, row.why) for row in sheet.rows}["empathy support"] == ("1", "offers help")


def test_verdicts_stand_with_what_they_are_on() -> None:
    rows = full()
    label = {"dialogue_id": "d1", "element": "utterance.2.emotion"}
    rows["verdicts"].append(
        _row("verdicts", **label, outcome="majority", value='"Joy"', changed=True, votes_for=2, votes_cast=3, panel=3)
    )
    with tables_of(rows) as connection:
        dialogue = make_shelves(connection)[2].transcripts[0]
    (sheet,) = dialogue.lines[1].sheets
    assert [(row.what, row.value, row.how) for row in sheet.rows] == [
        ("emotion", "Joy", "majority, 2 of 3 votes, changed")
    ]
    whole_dialogue = {row.what: row.value for row in dialogue.after[0].rows}
    assert whole_dialogue["persona.1.hobby"] == "(rejected)"


def test_text_is_shown_without_what_cannot_be_seen_and_not_for_ever() -> None:
    assert shorten("a\u202eb\x00c\n\u3000d") == "a\ufffdb\ufffdc\n\u3000d"
    assert shorten("x" * 8010).endswith("… (10 more characters)")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Moving house", "Moving house"),
        ("Moving house,\nsoon", "Moving house, soon"),
        ("Moving house, afterwards unpacking", "Moving house…"),
        ("Moving the houses along", "Moving the houses…"),
        ("搬家的时候应该带上什么东西才好呢我不知道", "搬家的时候应该带上什么东西才好呢我不…"),
        ("啊 搬家的时候应该带上什么东西才好呢我不知道", "啊 搬家的时候应该带上什么东西才好呢…"),
    ],
)
def test_a_long_title_ends_with_a_word_where_it_has_words(text: str, title: str) -> None:
    assert make_title(text, 18) == title


def test_scripted_and_embedded_models_are_named_as_meaning_nothing() -> None:
    models = {"scripted-a": {"provider": "scripted", "family": "a", "name": "x"}}
    settings = {"scenes": {"distiller": "scripted-a"}, "run": {"seed": 7}}
    roles = {"distiller": ["scripted-a"]}
    only = {"scenes": commit("scenes", models=models, settings=settings, roles=roles, profile="test")}
    assert "These scores mean nothing." in page({}, only).text
    real = {"gpt-4o": {"provider": "openai", "family": "gpt", "name": "gpt-4o"}}
    judged = commit("judging", "gpt-4o", models=real, roles={"judges": ["gpt-4o"]})
    some = page({}, {**only, "judging@gpt-4o": judged}).text
    assert "These scores mean nothing." not in some
    assert "Some models here prove the pipeline only" in some


@pytest.mark.parametrize(
    ("late", "says"),
    [
        (["metrics"], "metrics was made from rows that have changed since, or are gone, so what it says"),
        (
            ["voting", "metrics"],
            "voting, metrics were made from rows that have changed since, or are gone, so what they",
        ),
    ],
)
def test_what_is_behind_is_said_before_any_number(late: list[str], says: str) -> None:
    commits = {stage: replace(commit(stage), parents={"dialogues": "another hash"}) for stage in late}
    text = " ".join(page(full(), commits).text.split())
    assert says in text
    assert text.index("Not up to date:") < text.index("1 persona in the pools")


def test_a_waiver_and_what_targets_are_told_are_printed() -> None:
    section = {
        "targets": ["m3", "m4"],
        "simulator": "m2",
        "family_waiver": "one vendor only",
        "persona_to_target": "both",
    }
    roles = {"targets": ["m3"], "simulator": ["m2"]}
    held = {"conversation@m3": commit("conversation", "m3", settings={"conversation": section}, roles=roles)}
    text = page({}, held).text
    assert "one vendor only" in text
    known = collect_facts("b1", held, [{"alias": "m2", "family": "f", "provider": "google", "name": "n"}], [])
    assert known.persona_to_target == ("both",)
    assert [(role.role, role.alias, role.family) for role in known.roles] == [
        ("target", "m3", None),
        ("simulator", "m2", "f"),
    ]
    told = collect_facts("b1", held, [], [{"persona_to_target": "none"}, {"persona_to_target": "perception"}])
    assert told.persona_to_target == ("none", "perception")


def test_a_charts_equal_labels_stay_apart() -> None:
    names = [f"{'long' * 12}{end}" for end in "ab"]
    figure = charts.bars("c", [{"name": name, "n": 3} for name in names], "name", {"n": "n"}, "times")
    assert figure is not None
    assert "(2)" in figure.svg
    assert "xmlns" not in figure.svg


def lines_of(targets: int, turns: int) -> list[dict[str, Any]]:
    """A value for each target and turn."""
    return [
        {"metric": "empathy", "target": f"t{target:02d}", "turn": turn, "value": 40.0 + target + turn}
        for target in range(targets)
        for turn in range(1, turns + 1)
    ]


def test_the_marks_of_a_line_are_one_path_where_they_were_drawn() -> None:
    mark = '<path transform="translate({})" d="M-2.5,0A2.5,2.5,0,1,1,2.5,0L0,4Z" fill="red" stroke-width="2"/>'
    other = mark.format("1,1").replace("red", "blue")
    faint = mark.format("1,1").replace("/>", ' opacity="0.7"/>')
    drawn = mark.format("9,71.5") + mark.format("29.2,-3") + other + faint + faint
    svg, width = charts.inline_svg(f'<svg viewBox="0 0 50 90"><g>{drawn}</g></svg>')
    rest = "a2.5,2.5,0,1,1,5,0l-2.5,4z"
    joined = f'<path d="M6.5,71.5{rest}M26.7,-3{rest}" fill="red" stroke-width="2"/>'
    assert svg.endswith(f"<g>{joined}{other}{faint}{faint}</g></svg>"), "others, and what shines through, stay alone"
    assert width == 50


def test_every_line_of_a_chart_has_a_mark_of_its_own() -> None:
    figure = charts.lines("c", lines_of(17, 2), "turn", {"empathy": "empathy"}, "0-100")
    assert figure is not None
    key = re.findall(r'<path transform="translate\([^)]*\)" d="([^"]*)" fill="([^"]*)" stroke="', figure.svg)
    assert len(key) == len(set(key)) == 17


def test_of_many_points_a_chart_says_where_each_line_begins_and_ends() -> None:
    few = charts.lines("c", lines_of(3, 4), "turn", {"empathy": "E"}, "0-100")
    many = charts.lines("c", lines_of(17, 4), "turn", {"empathy": "E"}, "0-100")
    assert few is not None
    assert many is not None
    assert "E, t02, turn 1: 43.0, turn 2: 44.0, turn 3: 45.0, turn 4: 46.0" in few.description
    assert "E, t02, turn 1: 43.0, turn 4: 46.0; E, t03" in many.description


def test_nothing_to_draw_is_no_chart() -> None:
    assert charts.bars("c", [], "name", {"n": "n"}, "times") is None
    assert charts.shares("c", [{"name": "a", "n": 0}], "name", {"n": "red"}, "rows") is None
    assert charts.estimates("c", [], {"ficr": "FICR"}) is None
    assert charts.lines("c", [], "turn", {"ficr": "FICR"}, "") is None
    assert charts.histogram("c", [], "pool", {"n": "n"}) is None


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ([1, 2, 2, 0], False),
        ([3], False),
        ([300, None, 0], False),
        ([1, 3], True),
        ([], False),
    ],
)
def test_bars_that_say_no_more_than_their_table_are_not_drawn(counts: list[int | None], told: bool) -> None:
    assert charts.tells_something(counts) is told
    records = [{"name": f"{place}", "n": count} for place, count in enumerate(counts)]
    assert (charts.bars("c", records, "name", {"n": "n"}, "times") is not None) is told
    assert (charts.shares("c", records, "name", {"n": "red"}, "rows") is not None) is told


def test_one_bar_of_two_parts_is_drawn() -> None:
    assert charts.shares("c", [{"name": "a", "ok": 95, "lost": 5}], "name", {"ok": "red", "lost": "blue"}, "rows")


async def test_the_report_of_a_real_build_lies_in_its_folder(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    held, turns = conversation("v1", ["Move them in autumn."])
    await bench.give("chatseeds", {"chat_seeds": [seed()]})
    await bench.give("conversation", {"conversations": [held], "conversation_turns": turns}, "scripted-c")
    layout = bench.workspace().layout
    folder = layout.reports / "b1"
    folder.mkdir(parents=True)
    (folder / "predictions.html").write_text("of an earlier report")
    path = write_report(layout, "b1")
    assert path == layout.reports / "b1" / "index.html"
    found, read = (Page((folder / name).read_text(encoding="utf-8")) for name in (INDEX, "conversations.html"))
    assert "conversation @ scripted-c" in found.text or "scripted-c" in found.text
    assert "Move them in autumn." in read.text
    assert sorted(file.name for file in folder.iterdir()) == ["conversations.html", INDEX]
    write_report(layout, "b1", single_file=True)
    assert "Move them in autumn." in path.read_text(encoding="utf-8")
    assert [file.name for file in folder.iterdir()] == [INDEX]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [([], "there is no build in"), (["--build", "nix"], "build 'nix' does not exist")],
    ids=["none", "unknown"],
)
def test_a_build_that_is_not_there_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    monkeypatch.setenv("PREFECT_HOME", "/nowhere/prefect")
    monkeypatch.setattr(sys, "argv", ["colloquy", "report", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 4
    assert says in capsys.readouterr().err


def test_rows_come_by_column() -> None:
    with tables_of({}) as connection:
        assert rows(connection, "select 1 as a, ? as b", ["x"]) == [{"a": 1, "b": "x"}]
