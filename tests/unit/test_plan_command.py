"""`colloquy plan`: read like a user, without a network and without a key."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from flows.chain.results import StageResult
from flows.cli import main as cli
from flows.cli.plan import amount, dollars_of, usd, with_range
from flows.cli.screen import failed_line, planned_line, results_table, screen, unreported_line
from tasks.foundation.run.cost_plan import Expected, PlannedCalls
from tasks.foundation.run.progress import Progress

Plan = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Plan:
    """`colloquy plan` in this process, where there is no network and no key: its exit code, output and errors."""

    def refuse(*arguments: Any, **named: Any) -> None:
        raise AssertionError("a plan asked the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["colloquy", "plan", *arguments])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        return (code, *capsys.readouterr())

    return run


def line_of(out: str, *words: str) -> list[str]:
    """The cells of the first line that has all these words."""
    return next(line.split() for line in out.splitlines() if all(word in line.split() for word in words))


def test_the_plan_of_a_paper_needs_neither_network_nor_key(plan: Plan) -> None:
    code, out, _ = plan("--profile", "demo-paper", "--from", "dialogues")
    assert code == 0
    assert line_of(out, "dialogues", "gpt-4o")[:4] == ["dialogues", "to", "do", "gpt-4o"]
    assert out.splitlines()[1].startswith("Expected: ")
    assert "asks no model" in out
    assert "conflicts" not in out, "what comes before is tried, but is no part of the plan"
    assert "genai-prices" in out
    assert "configs/usual_usage.yaml" in out
    assert "At most, " in out
    assert "No budget is set" in out


def test_the_plan_names_the_budgets_it_passes(plan: Plan) -> None:
    _, alone, _ = plan("--profile", "test", "--only", "voting")
    expected = re.search(r"Expected: (\d+) \(", alone)
    assert expected is not None, alone
    limit = int(expected[1]) + 1
    _, out, _ = plan(
        *("--profile", "test", "--set", "run.budget.max_calls=100", "--set", f"voting.budget.max_calls={limit}"),
        *("--set", "judging.budget.max_tokens=1000000000"),
    )
    assert "Budget run.budget.max_calls = 100 will be passed" in out
    assert f"Budget voting.budget.max_calls = {limit} may be passed" in out
    assert "Budget judging.budget" not in out


def test_a_server_without_prices_is_planned_in_hours_by_its_speed(plan: Plan) -> None:
    write_own_model()
    asked = ("--profile", "test", "--only", "scenes", "--set", "scenes.distiller=mine")
    slow, fast = (plan(*asked, "--tokens-per-second", speed)[1].splitlines()[1] for speed in ("0.1", "1"))
    assert "hours" in slow and "minutes" in fast
    assert "unknown" in slow, "no price is no dollars of 0"


def test_a_budget_in_dollars_needs_prices(plan: Plan) -> None:
    settings = ("--set", "scenes.distiller=mine", "--set", "scenes.budget.max_cost_usd=5")
    write_own_model()
    _, out, _ = plan("--profile", "test", "--only", "scenes", *settings)
    assert line_of(out, "scenes", "mine")[-1] == "unknown"
    assert "dollars unknown" in out
    assert "Budget scenes.budget.max_cost_usd = 5 cannot be kept" in out


def write_own_model() -> None:
    from tasks.foundation.llm.own_models import add_model
    from tasks.foundation.store.layout import Layout

    entry = {"provider": "openai", "name": "mine", "family": "mine", "base_url": "http://localhost:1/v1"}
    Layout.default().root.mkdir(parents=True, exist_ok=True)
    add_model(Layout.default(), "mine", entry)


def test_settings_that_no_run_would_accept_are_refused(plan: Plan) -> None:
    code, _, err = plan("--profile", "test", "--set", "voting.arbiter=scripted-a")
    assert (code, "voting.arbiter" in err) == (2, True)


def test_a_waived_clash_of_families_is_said_once(plan: Plan, caplog: pytest.LogCaptureFixture) -> None:
    code, _, _ = plan("--profile", "eyt-paper", "--set", "conversation.family_waiver=a plan that says it once")
    said = [message for message in caplog.messages if "waived: a plan that says it once" in message]
    assert code == 0 and said
    assert len(said) == len(set(said))


def ran(
    decision: str, planned: tuple[float, float] | None, made: int, replayed: int = 0, *, earlier: int = 0
) -> StageResult:
    counts: Any = (0, False, 1, 1, 0, 0, made - earlier, replayed, 0, 0, 0.0, 0.1)
    return StageResult("s", "b", decision, *counts, planned, made, replayed)


def test_the_end_of_a_run_holds_its_calls_against_the_plan_of_what_ran() -> None:
    results = [ran("run", (10, 40), 12), ran("up to date", (100, 100), 100), ran("run", None, 7)]
    assert planned_line(results) == "Expected 10–40 calls, made 12."
    assert planned_line([ran("run again", (1000, 4000), 0, 1000)]) == (
        "Expected 1,000–4,000 calls, made 0; the cache answered 1,000 requests."
    )
    assert planned_line([ran("redo failed rows", (10, 40), 12, earlier=9)]) == (
        "Expected 10–40 calls, made 12 (3 of them in this run)."
    )
    assert planned_line([ran("up to date", (10, 40), 12), ran("run", (0, 0), 0)]) == ""


def test_tokens_that_a_server_does_not_report_are_unknown_not_zero() -> None:
    counts: Any = (0, False, 1, 1, 0, 0, 2, 0)
    none = StageResult("none", "b", "run", *counts, 0, 0, 0.0, 0.1, unreported=2)
    some = StageResult("some", "b", "run", *counts, 900, 334, 0.0, 0.1, unreported=1)
    whole = StageResult("whole", "b", "run", *counts, 900, 334, 0.0, 0.1)
    free = StageResult("free", "b", "run", *counts[:6], 0, 2, 0, 0, 0.0, 0.1)
    console = Console(width=160, file=StringIO())
    console.print(results_table([none, some, whole, free]))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert line_of(shown, "none")[7] == "unknown"
    assert line_of(shown, "some")[7:9] == ["≥", "1,234"]
    assert (line_of(shown, "whole")[7], line_of(shown, "free")[7]) == ("1,234", "0")
    assert "of 3 replies the provider reported none" in unreported_line([none, some, whole, free])
    assert unreported_line([whole, free]) == ""


def test_square_brackets_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    shown = screen(quiet=False)
    shown.say("voting.annotators=[a, b] and [/INST]")
    shown.changed(Progress("s", phase="working", rows_total=2, waiting="m: server ([/INST] queue [bold]full)"))
    out = capsys.readouterr().out
    assert "voting.annotators=[a, b] and [/INST]" in out
    assert "waiting: m: server ([/INST] queue [bold]full)" in out


def test_the_end_of_a_run_says_where_the_reasons_of_failed_rows_are() -> None:
    fine, partly = (StageResult("s", "b1", "run", 0, False, 9, 9 - n, 0, n, 9, 0, 0, 0, 0.0, 0.1) for n in (0, 2))
    assert 'colloquy sql --build b1 "select stage, row_key, kind, reason from rejects"' in failed_line([fine, partly])
    assert failed_line([fine]) == ""


def test_large_numbers_are_short_and_a_narrow_table_breaks_between_them() -> None:
    assert [amount(value) for value in (0, 9_999, 10_400, 999_400, 1_234_567, 2.5e9, 4.2e12)] == [
        *("0", "9,999", "10k", "999k", "1.23M", "2.5B", "4,200B")
    ]
    assert with_range(Expected.exactly(12), amount) == "12"
    assert with_range(Expected(100, 12, 240), amount) == "100 (12 – 240)"
    assert with_range(Expected(12.5, 0, 12_345.678), usd) == "12.50 (0.00 – 12,346)"


def priced(dollars: Expected | None, alias: str = "a") -> PlannedCalls:
    one = Expected.exactly(1)
    return PlannedCalls(alias, "ask", one, one, one, one, dollars, 0, None, None)


def test_a_sum_that_lacks_a_price_says_so() -> None:
    known = priced(Expected(1, 1, 2))
    assert dollars_of([known]) == "1.00 (1.00 – 2.00) US dollars"
    assert dollars_of([known, priced(None, "b")]) == "≥ 1.00 (1.00 – 2.00) US dollars, 1 model unpriced"
    assert dollars_of([priced(None, "b")], short=True) == "unknown"
