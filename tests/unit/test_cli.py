"""The command: bad input is one message and the exit code of its class; nothing is started for it."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

from flows.cli import main as cli
from flows.cli.cache import age
from flows.cli.console import age_of
from flows.cli.evaluate import Endpoint
from flows.cli.queries import ends_input, split_statements
from flows.cli.shell import Shell
from tasks.foundation import ROOT, errors
from tasks.foundation.errors import ColloquyError, ConfigError
from tasks.foundation.llm.cache import CachedReply, ReplyCache
from tasks.foundation.llm.own_models import add_model
from tasks.foundation.llm.request import RawReply, Usage
from tasks.foundation.store.commits import write_commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import rebuild_views
from tasks.foundation.tables import TABLES
from tests.unit.bare_commits import bare_commit


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def colloquy(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`colloquy` in this process: its exit code and what it wrote."""
    monkeypatch.setenv("PREFECT_HOME", "/nowhere/prefect")

    def run(*arguments: str, typed: str = "") -> Ended:
        monkeypatch.setattr(sys, "argv", ["colloquy", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        try:
            cli.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        else:
            code = 0
        written = capsys.readouterr()
        return Ended(code, written.out, written.err)

    return run


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["run", "--profile", "tset"], 2, "did you mean 'test'?"),
        (["status", "--profile", "tset"], 2, "did you mean 'test'?"),
        (["status", "--build", "No"], 2, "build name 'No'"),
        (["run", "--profile", "test", "--set", "voting.arbitr=x"], 2, "did you mean 'voting.arbiter'?"),
        (["run", "--profile", "test", "--set", "voting"], 2, "expected section.key=value, found 'voting'"),
        (["run", "--profile", "test", "--build", "a/b"], 2, "build name 'a/b'"),
        (["run", "--profile", "test", "--only", "votin"], 2, "did you mean 'voting'?"),
        (["run", "--profile", "test", "--only", "voting", "--from", "scenes"], 2, "cannot be given together"),
        (["run", "--profile", "test", "--set", "voting.arbiter=scripted-a"], 2, "voting.arbiter"),
        (["run", "--profile", "test", "--set", "voting.arbiter=nobody"], 2, "'nobody'"),
        (["run", "--profile", "test", "--set", "voting.arbiter=claude-sonnet-4.6"], 5, "ANTHROPIC_API_KEY"),
        (["run", "--profile", "test", "--only", "voting"], 4, "colloquy run --from dialogues"),
        (["use", "nix"], 4, "build 'nix' does not exist"),
        (["use"], 2, "--newest"),
        (["check", "--build", "nix"], 4, "build 'nix' does not exist"),
        (["sql", "select foo from scenes"], 2, 'Referenced column "foo" not found'),
        (["sql", "create table x (i int)"], 2, "read-only"),
        (["sql", "--file", "nix.sql"], 2, "nix.sql"),
        (["models", "pull"], 2, "--demo or --all"),
        (["models", "pull", "gpt-9"], 2, "'gpt-9'"),
        (["cache", "prune"], 2, "--older-than or --stage"),
        (["cache", "prune", "--older-than", "soon"], 2, "30d, 12h or 45min"),
        (["cache", "prune", "--stage", "nix"], 2, "expected one of personas, scenes, "),
        (["cache", "export", "replies.parquet", "--build", "nix"], 4, "build 'nix' does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_message_and_a_code(
    colloquy: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, says: str
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    ended = colloquy(*arguments)
    assert ended.code == code
    assert says in ended.err
    assert "Traceback" not in ended.err


def test_a_misspelt_environment_variable_is_refused(colloquy: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLOQUY_RUN__SED", "1")
    ended = colloquy("run", "--profile", "test")
    assert ended.code == 2
    assert "did you mean 'COLLOQUY_RUN__SEED'?" in ended.err


def test_weights_that_are_not_here_are_named_with_the_command_that_gets_them(
    colloquy: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLLOQUY_MODELS_DIR", str(tmp_path))
    ended = colloquy("run", "--profile", "demo")
    assert ended.code == 5
    assert "colloquy models pull qwen2.5-coder-0.5b" in ended.err


def test_a_fault_of_the_program_keeps_its_traceback(colloquy: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(ZeroDivisionError):
        colloquy()


def _kinds(of: type[ColloquyError]) -> list[type[ColloquyError]]:
    return [of, *(kind for each in of.__subclasses__() for kind in _kinds(each))]


def test_every_exit_code_is_explained_in_the_help_and_the_documentation() -> None:
    written = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    codes = {kind.exit_code for kind in _kinds(errors.ColloquyError)} | {0, 7, 8, 130}
    for code in codes:
        assert f" {code} " in cli.EXIT_CODES.replace("\n", " ")
        assert f"| {code} |" in written


def test_every_command_that_the_documentation_names_exists() -> None:
    known = set(cli.COMMANDS)
    for file in (ROOT / "README.md", ROOT / "Makefile", *(ROOT / "docs").glob("*.md")):
        named = re.findall(r"(?:\$ |`|/)colloquy ([a-z]+)", file.read_text(encoding="utf-8"))
        assert set(named) <= known, f"{file.name} names {set(named) - known}"


@pytest.mark.parametrize("command", [cli.LazyCommand(name, place) for name, place in cli.COMMANDS.items()])
def test_the_list_of_commands_says_of_each_what_it_says_itself(command: cli.LazyCommand) -> None:
    assert command.describe()
    assert command.describe() == command.load().help


def test_a_command_imports_what_it_needs_once_it_runs() -> None:
    heavy = ("prefect", "polars", "pyarrow", "duckdb", "numpy", "openai", "torch")
    code = f"import sys, flows.cli.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_status_of_an_empty_store_says_how_to_begin(colloquy: Run) -> None:
    ended = colloquy("status", "--profile", "test")
    assert ended.code == 0
    assert "not run yet" in ended.out
    assert "colloquy run" in ended.out


def test_answers_come_as_a_box_as_csv_and_as_json(colloquy: Run) -> None:
    query = "select 1 as n, null as nothing, 'a,b' as text, [1, 2] as several, true as yes"
    assert "│" in colloquy("sql", query).out
    assert colloquy("sql", query, "--format", "csv").out == 'n,nothing,text,several,yes\n1,,"a,b","[1, 2]",true\n'
    assert json.loads(colloquy("sql", query, "--format", "json").out) == [
        {"n": 1, "nothing": None, "text": "a,b", "several": [1, 2], "yes": True}
    ]


def test_an_answer_is_a_table_of_markdown(colloquy: Run) -> None:
    query = "select 1 as n, null as nothing, 'a|b' || chr(10) || '*c*' as text, true as yes"
    query += " union all select 2.5, null, 'd', null"
    assert colloquy("sql", query, "--format", "md").out.splitlines() == [
        "| n | nothing | text | yes |",
        "|---:|---|---|---|",
        r"| 1.0 |  | a\|b \*c\* | true |",
        "| 2.5 |  | d |  |",
    ]


def test_an_answer_goes_to_a_file_whole_or_not_at_all(colloquy: Run, tmp_path: Path) -> None:
    file = tmp_path / "answer.parquet"
    ended = colloquy(
        "sql", "select i, i || 'x' as t from range(5000) r(i)", "--format", "parquet", "--output", str(file)
    )
    assert (ended.code, ended.out) == (0, "")
    assert duckdb.sql(f"select count(*), max(t) from '{file}'").fetchall() == [(5000, "9x")]
    assert colloquy("sql", "select 1 as n", "--format", "csv", "-o", str(file)).code == 0
    assert file.read_text() == "n\n1\n"
    for query, says in (
        ("select error('no')", "cannot be answered"),
        ("select 1; select 2", "expected one statement"),
        ("selec 1", "cannot be answered"),
    ):
        ended = colloquy("sql", query, "-o", str(file))
        assert ended.code == 2 and says in ended.err
        assert file.read_text() == "n\n1\n"
    assert [each.name for each in tmp_path.iterdir() if "answer" in each.name] == ["answer.parquet"]
    inside = Layout.default().root / "x.csv"
    assert "only runs may change" in colloquy("sql", "select 1", "-o", str(inside)).err
    assert "expected --output FILE" in colloquy("sql", "select 1", "--format", "parquet").err
    away = colloquy("sql", "select 1", "-o", str(file / "within.csv"))
    assert away.code == 4 and str(file) in away.err


def test_a_query_that_has_a_name_is_asked_by_it(colloquy: Run) -> None:
    listed = colloquy("sql", "@").out
    assert "@funnel" in listed and "@disputes" in listed
    assert (
        colloquy("sql", "@funnel", "--format", "csv").out
        == colloquy("sql", "--file", str(ROOT / "sql/reports/funnel.sql"), "--format", "csv").out
    )
    typed = colloquy("sql", "--format", "csv", typed="@funnel;\n").out
    assert typed == colloquy("sql", "@funnel", "--format", "csv").out
    wrong = colloquy("sql", "@disputs")
    assert wrong.code == 2 and "the nearest: disputes" in wrong.err


def test_columns_of_one_name_are_told_apart_as_duckdb_does(colloquy: Run) -> None:
    query = "select 1 as n, 2 as n, 3 as N, 4 as n_1"
    names = duckdb.connect().sql(query).df().columns.to_list()
    assert json.loads(colloquy("sql", query, "--format", "json").out) == [dict(zip(names, [1, 2, 3, 4], strict=True))]
    assert colloquy("sql", query, "--format", "csv").out == f"{','.join(names)}\n1,2,3,4\n"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("'nan'::double", None),
        ("'-inf'::float", None),
        ("[1.5, 'inf'::double]", [1.5, None]),
        ("{'a': 'nan'::double, 'b': [{'c': 'nan'::float}]}", {"a": None, "b": [{"c": None}]}),
        ("map {date '2026-12-01': 1}", {"2026-12-01": 1}),
        ("map {'nan'::double: 'x'}", {"null": "x"}),
        ("1.25::decimal(9, 2)", 1.25),
        ("2::hugeint ** 100", 2.0**100),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_answers_are_json_whatever_the_values(colloquy: Run, value: str, found: object) -> None:
    def refused(constant: str) -> None:
        raise AssertionError(constant)

    out = colloquy("sql", f"select {value} as v", "--format", "json").out
    assert json.loads(out, parse_constant=refused) == [{"v": found}]
    if isinstance(found, list | dict):
        (cell,) = list(csv.reader(io.StringIO(colloquy("sql", f"select {value} as v", "--format", "csv").out)))[1]
        assert json.loads(cell, parse_constant=refused) == found


def test_an_answer_without_rows_is_still_json(colloquy: Run) -> None:
    assert json.loads(colloquy("sql", "select * from scenes", "--format", "json").out) == []


def test_a_query_may_come_from_standard_input_and_hold_several_statements(colloquy: Run) -> None:
    ended = colloquy("sql", "--format", "csv", typed="select 1 as a; select 2 as b;")
    assert ended.out == "a\n1\nb\n2\n"


def test_a_query_is_asked_of_the_named_build(colloquy: Run) -> None:
    for build in ("b1", "b2"):
        commit_scenes(build)
    query = "select distinct build from stage_runs"
    assert [colloquy("sql", "--build", build, query, "--format", "csv").out for build in ("b1", "b2")] == [
        *("build\nb1\n", "build\nb2\n")
    ]
    told = colloquy("sql", "--build", "b1", query).err
    assert told == "schema main: build b1, one of 2; --build NAME asks another\n"
    assert colloquy("sql", "--build", "b1", query, "--format", "json").err == ""
    ended = colloquy("sql", "--build", "nix", query)
    assert (ended.code, ended.err) == (
        4,
        "store error: build 'nix' does not exist; expected one of: b1, b2\n",
    )


def test_a_named_build_cannot_be_used_to_write_into_the_store(colloquy: Run) -> None:
    commit_scenes("b1")
    store = Layout.default().database
    ended = colloquy("sql", "--build", "b1", f"attach '{store}' as s; create table s.mine (i int)")
    assert (ended.code, "read-only" in ended.err) == (2, True)


def test_where_one_build_is_there_nothing_is_said_of_others(colloquy: Run) -> None:
    commit_scenes("b1")
    assert colloquy("sql", "select 1").err == ""


def commit_scenes(build: str) -> None:
    """A commit without rows, and the views of it."""
    layout = Layout.default()
    write_commit(layout, bare_commit(build, "scenes"))
    rebuild_views(layout)


def test_one_record_that_cannot_be_read_stops_no_other_build(colloquy: Run, caplog: pytest.LogCaptureFixture) -> None:
    for build in ("b1", "b2"):
        commit_scenes(build)
    record = Layout.default().commit("b2", "scenes")
    record.write_text("{}")
    assert colloquy("sql", "select build, state from builds order by build", "--format", "csv").out == (
        "build,state\nb1,unfinished\nb2,unreadable\n"
    )
    assert str(record) in caplog.text
    assert colloquy("check").code == 0
    assert colloquy("status", "--profile", "test", "--build", "b1").code == 0
    assert colloquy("drop", "--judge", "m", "--build", "b1").code == 4
    broken = colloquy("check", "--build", "b2")
    assert (broken.code, str(record) in broken.err) == (4, True)
    entry = {"provider": "openai", "name": "m", "family": "mine", "base_url": "https://models.example/v1"}
    add_model(Layout.default(), "mine", entry)
    add_model(Layout.default(), "mine", {**entry, "name": "other"})


def test_dot_commands_may_come_from_standard_input(colloquy: Run) -> None:
    ended = colloquy("sql", typed="select\n .5 as half;\n.format csv\nselect 2 as two;\n.tables seed\n")
    assert ended.code == 0
    assert "half" in ended.out and "two\n2\n" in ended.out
    assert "chat_seeds" in ended.out and "verdicts" not in ended.out
    wrong = colloquy("sql", typed=".nix")
    assert (wrong.code, ".help lists what is" in wrong.err) == (2, True)


def test_a_line_that_begins_with_a_dot_within_a_statement_is_part_of_it() -> None:
    assert split_statements("select 'a\n.tables';\n.tables\n") == ["select 'a\n.tables';\n", ".tables"]
    assert split_statements("select\n.5") == ["select\n.5"]


def test_tables_that_are_listed_are_those_that_are_documented(colloquy: Run) -> None:
    listed = colloquy("sql", "show tables", "--format", "csv").out.split()[1:]
    assert sorted(listed) == sorted([*TABLES, "stage_runs", "builds"])
    told = colloquy("sql", typed=".tables").out
    assert all(f" {name} " in told for name in listed)
    assert "history.scenes" in told


def test_enter_ends_the_input_once_the_statement_is_finished() -> None:
    assert not ends_input("select 1")
    assert ends_input("select 1;")
    assert ends_input(".tables")
    assert ends_input("  ")


def test_the_shell_survives_mistakes_and_knows_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from flows.cli.queries import Format

    shell = Shell(Layout(tmp_path), Format.csv)
    for text in (
        "select foo from scenes;",
        ".schema verdicts",
        ".tables turn",
        ".schema nix",
        ".nix",
        "select 1 as one;",
    ):
        shell.answer(text)
    out = capsys.readouterr().out
    assert 'Referenced column "foo" not found' in out
    assert "size of the panel that voted" in out
    assert "conversation_turns" in out
    assert ".schema expects one of" in out
    assert ".help lists what is" in out
    assert out.endswith("one\n1\n")


def test_a_build_whose_replies_are_kept_may_be_exported_before_it_has_a_commit(colloquy: Run, tmp_path: Path) -> None:
    file = tmp_path / "replies.parquet"
    with ReplyCache(Layout.default().cache / "replies.sqlite") as cache:
        asyncio.run(cache.put(entry("first/scenes", stage="scenes")))
        asyncio.run(cache.put(entry("later/old", stage="old")))
    assert colloquy("cache", "export", str(file), "--build", "first").out.startswith("1 replies written")
    nix = colloquy("cache", "export", str(file), "--build", "nix")
    assert (nix.code, "expected one of: first, later" in nix.err) == (4, True)
    assert colloquy("cache", "stats").out.count("unknown") == 4  # neither reply came with its tokens
    assert colloquy("cache", "prune", "--stage", "voting").out == "0 replies deleted\n"
    assert colloquy("cache", "prune", "--stage", "old").out == "1 replies deleted\n"


def entry(run_id: str, *, stage: str) -> CachedReply:
    reply = RawReply("{}", Usage(), "stop")
    return CachedReply(run_id, "{}", reply, run_id, "r1", stage, "scripted-a", datetime(2026, 12, 1, tzinfo=UTC))


def test_a_file_that_only_the_query_names_is_not_called_a_file_of_a_build(colloquy: Run) -> None:
    ended = colloquy("sql", "from '/nowhere/mine.csv'")
    assert ended.code == 2
    assert "/nowhere/mine.csv" in ended.err and "of a build" not in ended.err


def test_ages_are_read_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert age("12h").total_seconds() == 12 * 3600
    with pytest.raises(ConfigError):
        age("12")
    assert age_of("2020-01-01T00:00:00+00:00").endswith(" d")


def test_source_files_that_are_not_there_are_told_before_a_run(colloquy: Run) -> None:
    sources = "scenes.sources=[{corpus: talks, reader: jsonl, path: /nowhere/talks.jsonl}]"
    planned = colloquy("plan", "--profile", "test", "--set", sources)
    assert (planned.code, "/nowhere/talks.jsonl" in planned.err) == (3, True)
    mapped = "personas.sources=[{pool: p, reader: mapped, path: pyproject.toml, mapping: {descripton: x}}]"
    assert "found 'descripton'" in colloquy("plan", "--profile", "test", "--set", mapped).err
    looked = colloquy("doctor", "--profile", "test")
    assert "ok       source    nemotron_usa: configs/sample/nemotron_personas.jsonl is here" in looked.out


def test_what_a_first_row_becomes_is_shown_before_a_run(colloquy: Run, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("about,who\nMira repairs bicycles near the harbour.,Mira\n")
    turns = [{"by": "Ines", "said": "Is it late?"}, {"by": "Otto", "said": "A little."}]
    (tmp_path / "talks.json").write_text(json.dumps({"data": [{"lines": turns * 2}]}))
    people = f"{{pool: people, reader: mapped, path: {tmp_path}/people.csv, mapping: {{description: about, name: %s}}}}"
    talks = f"{{corpus: talks, path: {tmp_path}/talks.json, mapping: {{rows: 'data[]', dialogue: 'lines[].said', %s}}}}"
    profile = tmp_path / "mine.yaml"
    settings = "description: mine\npersonas: {sources: [%s]}\nscenes: {sources: [%s]}\n"
    text = settings % (people % "who", talks % "speakers: 'lines[].by'")
    profile.write_text(text, encoding="utf-8")
    for command in ("doctor", "plan"):
        out = " ".join(colloquy(command, "--profile", str(profile)).out.split())
        assert "name Mira; 'Mira repairs bicycles near the harbour.'" in out
        assert "is 4 turns, Ines: Is it late? / Otto: A little." in out
    text = settings % (people % "whose", talks % "speakers: 'lines[].from'")
    profile.write_text(text, encoding="utf-8")
    out = colloquy("doctor", "--profile", str(profile)).out
    assert "missing  source    people:" in out and "lacks the column 'whose'" in out
    assert "missing  source    talks:" in out and "lacks the column 'lines[].from'" in out
    planned = colloquy("plan", "--profile", str(profile))
    assert planned.code == 3 and "lacks the column 'whose'" in planned.err


def test_a_budget_that_cannot_be_kept_is_refused_before_the_first_stage(colloquy: Run) -> None:
    entry = {"provider": "openai", "name": "m", "family": "mine", "base_url": "https://models.example/v1"}
    add_model(Layout.default(), "unpriced", entry)
    settings = ("awareness.targets=[unpriced]", "run.budget.max_cost_usd=1")
    ended = colloquy("run", "--profile", "test", *(word for setting in settings for word in ("--set", setting)))
    assert ended.code == 2
    assert "expected a price for every model of stage awareness, found none for unpriced" in ended.err


@pytest.mark.parametrize(
    ("base_url", "given", "prices"),
    [
        ("http://localhost:8000/v1", None, None),
        ("http://localhost:8000/v1", "0,0", (0.0, 0.0)),
        ("http://localhost:8000/v1", "1,2", (1.0, 2.0)),
        ("https://models.example/v1", "0.15, 0.6", (0.15, 0.6)),
        ("https://models.example/v1", None, None),
    ],
)
def test_a_price_is_unknown_unless_it_is_given(
    base_url: str, given: str | None, prices: tuple[float, float] | None
) -> None:
    entry = Endpoint(base_url, None, "mine", None, None, given).entry("mine")
    found = entry.get("prices")
    assert (tuple(found.values()) if found else None) == prices
    with pytest.raises(ConfigError, match=r"--prices: expected two numbers such as 0\.15,0\.6, found 'much'"):
        Endpoint(base_url, None, "mine", None, None, "much").entry("mine")


def test_the_doctor_knows_the_models_of_the_artifacts(colloquy: Run, tmp_path: Path) -> None:
    entry = {"provider": "scripted", "name": "tasks.foundation.llm.providers.scripted:from_schema", "family": "own"}
    add_model(Layout.default(), "house-model", entry)
    profile = tmp_path / "mine.yaml"
    profile.write_text("description: mine\nvoting: {arbiter: house-model}\n", encoding="utf-8")
    lines = colloquy("doctor", "--profile", str(profile)).out.splitlines()
    assert [line.split()[0] for line in lines if "house-model" in line] == ["ok"]


def test_the_doctor_never_shows_a_key(colloquy: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    ended = colloquy("doctor", "--profile", "eyt-paper")
    assert "a key is set in ANTHROPIC_API_KEY" in ended.out
    assert "GEMINI_API_KEY, which is not set" in ended.out
    assert "sk-very-secret" not in ended.out + ended.err
    assert ended.code == 5


def test_the_doctor_names_the_weights_of_the_profile_once_with_their_publisher(
    colloquy: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLLOQUY_MODELS_DIR", str(tmp_path))
    lines = colloquy("doctor", "--profile", "demo").out.splitlines()
    for name, publisher in (("smollm2-135m", "HuggingFaceTB"), ("all-minilm-l6-v2", "sentence-transformers")):
        (named,) = [line for line in lines if f"models pull {name}" in line]
        assert named.startswith("missing ") and f"published by {publisher}, Apache-2.0" in named
    paper = colloquy("doctor", "--profile", "demo-paper").out
    assert "smollm2-135m" not in paper and paper.count("models pull all-minilm-l6-v2") == 1


def test_what_a_run_does_without_is_called_optional(
    colloquy: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLLOQUY_MODELS_DIR", str(tmp_path))
    lines = colloquy("doctor", "--profile", "test").out.splitlines()
    (chinese,) = [line for line in lines if "Chinese" in line]
    assert chinese.startswith("optional encoder ") and "compared by their characters" in chinese
    assert any(line.startswith("missing  encoder   English:") for line in lines)


def test_checks_on_an_empty_store_find_nothing(colloquy: Run) -> None:
    ended = colloquy("check")
    assert ended.code == 0
    assert "found nothing" in ended.out
