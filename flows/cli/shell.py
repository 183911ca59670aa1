"""The interactive shell of `colloquy sql`: statements end with `;`, words that begin with a dot are ours."""

from __future__ import annotations

from collections.abc import Iterable

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from rich.table import Table as Grid

from flows.cli.console import make_table, terminal
from flows.cli.queries import Format, ask, ends_input, is_command, named_grid, open_reading
from tasks.foundation.errors import ColloquyError, ConfigError
from tasks.foundation.store.commits import builds
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import duckdb_type, shown_build
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.operations import OVERVIEW
from tasks.report.questions import find_report

HELP = """\
Statements end with ; and may run over several lines.
  .tables [WORD]         the tables, with what a row of each is
  .schema TABLE          its columns, their types and meanings
  .format FORM           how answers are written: table, csv, json or md
  @NAME;                 a query of sql/reports; @ lists them
  .help                  this
  .quit                  leave (so does Ctrl-D); Ctrl-C drops the line
Schema main shows the build of --build or `colloquy use`, schema history all builds."""

DESCRIBED = {**TABLES, **OVERVIEW}
"""What `.tables` lists."""
HISTORY = "Each of them is in schema history too (history.scenes …), with the rows of all builds by the column build."


class Shell:
    """Reads statements, answers them, survives mistakes. Sees new commits as they are made."""

    def __init__(self, layout: Layout, form: Format, build: str | None = None) -> None:
        self._layout = layout
        self._form = form
        self._build = build
        self._console = terminal()
        self._connection = open_reading(layout, build)
        self._version = self._file_version()

    def run(self) -> None:
        """Until Ctrl-D or .quit."""
        session = self._session()
        shown = self._build or shown_build(self._layout) or "none yet"
        self._console.print(f"build {shown}{self._history()}; .help for help, Ctrl-D to leave", soft_wrap=True)
        while True:
            try:
                text = session.prompt("colloquy> ").strip()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            if text in (".quit", ".exit"):
                return
            if text:
                self.answer(text)

    def answer(self, text: str) -> None:
        """Answer a statement or a dot command; a mistake is one message."""
        try:
            self._see_new_commits()
            self._obey(text)
        except ColloquyError as error:
            self._console.print(str(error), style="red", markup=False, soft_wrap=True)
        except KeyboardInterrupt:
            self._connection.interrupt()
            self._console.print("interrupted")

    def obey(self, parts: Iterable[str]) -> None:
        """Statements and dot commands that were not typed here; the first mistake ends it, with ConfigError."""
        for part in parts:
            if part in (".quit", ".exit"):
                return
            self._obey(part)

    def _obey(self, text: str) -> None:
        if is_command(text):
            self._dot(text.rstrip(";").split())
            return
        name = text.strip().rstrip(";").strip()
        if name == "@":
            self._console.print(named_grid())
            return
        text = find_report(name[1:]) if name.startswith("@") else text
        ask(self._connection, text, self._form, self._layout)
        if self._form is Format.table and text.rstrip("; \n").lower().split() == ["show", "tables"]:
            self._console.print(HISTORY, soft_wrap=True)

    def _history(self) -> str:
        """How many builds schema history has, where there is more than one."""
        count = len(builds(self._layout))
        return f" in schema main, all {count} builds in schema history" if count > 1 else ""

    def _dot(self, words: list[str]) -> None:
        match words:
            case [".help"]:
                self._console.print(HELP, markup=False)
            case [".tables", *words] if len(words) < 2:
                self._console.print(tables_grid("".join(words)))
                self._console.print(HISTORY, soft_wrap=True)
            case [".schema", name] if name in DESCRIBED:
                self._console.print(columns_grid(name))
            case [".format", form] if form in tuple(Format) and form != Format.parquet:
                self._form = Format(form)
            case [".schema", *_]:
                raise ConfigError(".schema expects one of: " + ", ".join(DESCRIBED))
            case [".format", *_]:
                raise ConfigError(".format expects table, csv, json or md")
            case _:
                raise ConfigError(f"{words[0]} is not known here; .help lists what is")

    def _see_new_commits(self) -> None:
        """The database file is replaced by each commit; the old one would go on showing the old rows."""
        version = self._file_version()
        if version != self._version:
            self._connection.close()
            self._connection = open_reading(self._layout, self._build)
            self._version = self._file_version()
            self._console.print("(new commits: the views were opened anew)", style="dim")

    def _file_version(self) -> tuple[int, int] | None:
        try:
            found = self._layout.database.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _session(self) -> PromptSession[str]:
        self._layout.cache.mkdir(parents=True, exist_ok=True)
        return PromptSession(
            history=FileHistory(str(self._layout.cache / "sql_history")),
            auto_suggest=AutoSuggestFromHistory(),
            completer=WordCompleter(_words(), ignore_case=True),
            complete_while_typing=False,
            multiline=True,
            key_bindings=_enter_when_complete(),
            prompt_continuation="      ... ",
        )


def tables_grid(word: str = "") -> Grid:
    """Tables with a word in their names, and their grain."""
    grid = make_table("table", "holds")
    for name, table in DESCRIBED.items():
        if word in name:
            grid.add_row(name, table.grain)
    return grid


def columns_grid(name: str) -> Grid:
    """The columns of a table, from its declaration."""
    table = DESCRIBED[name]
    grid = make_table("column", "type", "meaning", title=f"{name}: {table.grain}; key {', '.join(table.key)}")
    for field in table.schema:
        meaning = table.row.model_fields[field.name].description or ""
        grid.add_row(field.name, duckdb_type(field.type), meaning)
    return grid


def _enter_when_complete() -> KeyBindings:
    bindings = KeyBindings()

    def complete() -> bool:
        from prompt_toolkit.application import get_app

        return ends_input(get_app().current_buffer.text)

    @bindings.add("enter", filter=Condition(complete))
    def _accept(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


def _words() -> list[str]:
    columns = {column for table in DESCRIBED.values() for column in table.columns}
    return [*DESCRIBED, *sorted(columns), "history", ".tables", ".schema", ".format", ".help", ".quit"]
