"""What a commit record and the manifest of a release may say; both are data, and name files.

Checked before the first of those files is touched: nothing they name lies outside its folder, no number or name is of
another kind than ours are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from tasks.foundation.store.layout import BUILD, run_name

Name = Annotated[str, Field(pattern=r"\A[a-z][a-z0-9_]*\z", max_length=64)]
"""Of a table, draft or stage."""
Hash = Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]
Count = Annotated[int, Field(ge=0, lt=2**63)]
Fingerprint = Annotated[str, Field(pattern=r"\A[0-9A-Za-z]{1,64}\z")]
PART = r"part-[A-Za-z0-9_.-]+\.parquet"


def _moment(text: str) -> str:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("expected a time with its offset from UTC")
    try:
        moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("expected a time of the years 1 to 9999 in UTC") from None
    return text


Moment = Annotated[str, AfterValidator(_moment)]
"""ISO 8601."""


class _Record(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True)


class PartRecord(_Record):
    path: str
    rows: Count
    hash: Hash
    label: Annotated[str, Field(pattern=r"\A[A-Za-z0-9_.-]{1,64}\z")]


class AccountingRecord(_Record):
    n_in: Count
    n_produced: Count
    n_filtered: Count
    n_failed: Count
    filtered: dict[str, Count]
    failed: dict[str, Count]


class UsageRecord(_Record):
    model_config = ConfigDict(strict=True, extra="allow", defer_build=True)

    calls: Count | None = None
    cost_usd: Annotated[float, Field(allow_inf_nan=False)] | None = None


class ToldRecord(_Record):
    """What only people read. Other parts may be there, those that commands look into are of their kind."""

    model_config = ConfigDict(strict=True, extra="allow", defer_build=True)

    profile: str = ""
    overrides: list[str] = []
    guest: bool = False
    plan_revision: Count = 0
    settings: dict[str, dict[str, Any]] = {}
    models: dict[str, dict[str, Any]] = {}
    sources: list[dict[str, Any]] = []
    libraries: dict[str, str] = {}


class CommitRecord(_Record):
    """As `Commit.to_json` writes it."""

    build: Annotated[str, Field(pattern=rf"\A{BUILD}\z")]
    stage: Name
    member: str | None
    fingerprint: Fingerprint
    revision: Count
    partial: bool
    tables: dict[Name, list[PartRecord]]
    drafts: dict[Name, list[PartRecord]]
    columns: dict[Name, dict[Name, str]] = {}
    accounting: AccountingRecord
    components: dict[str, str]
    parents: dict[Name, Annotated[str, Field(pattern=r"\A([0-9a-f]{64})?\z")]]
    started_at: Moment
    ended_at: Moment
    ends_chain: bool
    usage: UsageRecord
    record: ToldRecord

    @model_validator(mode="after")
    def _files_are_its_own(self) -> CommitRecord:
        for table, parts in self.tables.items():
            self._check_places(table, parts)
        for draft, parts in self.drafts.items():
            self._check_places(f"_{self.stage}_{draft}", parts)
        return self

    def _check_places(self, folder: str, parts: list[PartRecord]) -> None:
        expected = re.compile(rf"store/{folder}/build={re.escape(self.build)}/[0-9A-Za-z]+/{PART}")
        for part in parts:
            if not expected.fullmatch(part.path):
                raise ValueError(f"expected a part below store/{folder}/build={self.build}, found {part.path!r}")


ReleasedFile = Annotated[str, Field(pattern=r"\Adata/[a-z_]+/(en|zh)/test\.parquet\z")]


class ReleasedTable(_Record):
    rows: Count
    hash: Hash
    files: Annotated[
        list[Annotated[str, Field(pattern=r"\Adata/[a-z_]+/(en|zh)/test\.parquet\z")]], Field(min_length=1)
    ]


class ReleasedSource(_Record):
    """A source of rows; what a release says beside this is kept."""

    model_config = ConfigDict(strict=True, extra="allow", defer_build=True)

    name: str
    licence: str
    rows: Count
    used: Count
    unit: str
    split: str | None = None
    revision: str | None = None
    commit: str | None = None


class ReleasedModel(_Record):
    model_config = ConfigDict(strict=True, extra="allow", defer_build=True)

    name: str
    family: str


class ReleasedStage(_Record):
    fingerprint: Fingerprint
    models: dict[str, ReleasedModel]
    calls: Count | None
    cost_usd: Annotated[float, Field(allow_inf_nan=False)] | None


class Material(_Record):
    """The training material that a release was checked against: nothing of it is there."""

    files: list[str]
    rows: Count
    texts: Count


class Manifest(_Record):
    """manifest.json of a release."""

    format: int
    build: Annotated[str, Field(pattern=rf"\A{BUILD}\z")]
    version: str
    canary: str
    released_at: Moment
    tables: Annotated[dict[Name, ReleasedTable], Field(min_length=1)]
    results: dict[Name, Count]
    contact_data_hidden: dict[str, Count]
    checked_against: Material | None = None
    licences_of_sources: list[str]
    sources: list[ReleasedSource]
    stages: dict[str, ReleasedStage]


R = TypeVar("R", bound=_Record)


def read_record(path: Path, kind: type[R]) -> tuple[R, dict[str, Any]]:
    """The record in a file, checked, and as plain values. OSError where it cannot be read, ValueError with what is
    wrong for one that is not of this kind."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        return kind.model_validate(plain), plain
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where or 'it'}: {first['msg']}, found {str(first.get('input'))[:80]!r}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_commit_record(path: Path, build: str, run: str) -> Mapping[str, Any]:
    """The record of a commit, which must be of the build and run that its place says; raises as `read_record`."""
    record, plain = read_record(path, CommitRecord)
    if (record.build, run_name(record.stage, record.member)) != (build, run):
        raise ValueError(f"it is of {run_name(record.stage, record.member)!r} in build {record.build!r}")
    return plain
