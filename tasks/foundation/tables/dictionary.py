"""The data dictionary, docs/tables.md, written from the registry: `python -m tasks.foundation.tables.dictionary`."""

from __future__ import annotations

from pathlib import Path

from tasks.foundation.tables import TABLES, Table
from tasks.foundation.tables.operations import OVERVIEW
from tasks.foundation.tables.references import references

DICTIONARY = Path(__file__).resolve().parents[3] / "docs" / "tables.md"

_HEAD = """# The tables

Every table of a build, as declared in tasks/foundation/tables. Each is a view in artifacts/colloquy.duckdb:
`main.<table>` for the shown build, `history.<table>` for all of them; both also have a `build` column. Ids are
a prefix and 16 hex digits of a hash over what identifies the row. `json` columns hold canonical JSON. NaN is
never stored; what null means is said per column. The last two, `stage_runs` and `builds`, are views over the commits.
The same words stand as comments on the views and their columns (`duckdb_views()`, `duckdb_columns()`).
"""


def dictionary() -> str:
    """The whole text of the data dictionary."""
    return "\n".join([_HEAD, *(_section(table) for table in (TABLES | OVERVIEW).values())])


def _section(table: Table) -> str:
    rows = [
        f"| {name} | {_type_name(table, name)} | {str(field.description).replace('|', chr(92) + '|')} |"
        for name, field in table.row.model_fields.items()
    ]
    key = ", ".join(table.key)
    beside = f". The view also shows the columns of {table.beside}" if table.beside else ""
    head = [f"## {table.name}", "", f"{table.grain}; key: {key}{beside}", ""]
    named = [str(one) for one in references(table.name)] if table.name in TABLES else []
    head += [f"Refers to: {'; '.join(named)}", ""] if named else []
    head += ["| column | type | what |", "|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def _type_name(table: Table, column: str) -> str:
    type_ = str(table.schema.field(column).type).replace("item: ", "").replace(" not null", "")
    return type_.replace("string", "utf8").replace("|", r"\|")


def main() -> None:
    DICTIONARY.write_text(dictionary(), encoding="utf-8")


if __name__ == "__main__":
    main()
