"""Source files: rows, bad rows, and every way in which a whole file can be unusable."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.errors import SourceError
from tasks.foundation.ids import canonical_json
from tasks.foundation.settings.sections import Source
from tasks.foundation.sources import SourceRow, find_files, open_source
from tasks.foundation.sources.files import read_file
from tasks.foundation.sources.formats import read_batches
from tasks.foundation.sources.hub import hub_problem
from tasks.foundation.sources.rows import Problem, SourceRejects
from tests.unit.source_stages import write_jsonl


def rows_of(path: Path, **how: Any) -> list[SourceRow]:
    return list(open_source(Source(path=str(path), **how.pop("source", {})), **how))


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_jsonl_rows_carry_their_line_and_skip_blank_ones(tmp_path: Path, name: str) -> None:
    path = write_jsonl(tmp_path / name, [{"a": 1}, "!", ["bare", "array"]])
    rows = rows_of(path)
    assert [(row.index, row.where, row.value) for row in rows] == [
        (0, f"{name}:1", {"a": 1}),
        (1, f"{name}:3", ["bare", "array"]),
    ]


@pytest.mark.parametrize("line", ["{not json", '{"a": NaN}', '{"a": "\\ud800"}', "[" * 100_000, "[" * 60 + "]" * 60])
def test_a_line_that_is_not_json_is_a_problem_of_its_row_only(tmp_path: Path, line: str) -> None:
    first, bad, last = rows_of(write_jsonl(tmp_path / "rows.jsonl", [{"a": 1}, "!" + line, {"a": 2}]))
    assert (first.value, last.value) == ({"a": 1}, {"a": 2})
    assert bad.problem is not None and bad.problem.kind == "parse" and bad.where == "rows.jsonl:2"
    assert len(bad.text or "") <= 200


def test_a_byte_order_mark_is_no_part_of_the_first_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    assert rows_of(path)[0].value == {"a": 1}


def test_line_separators_inside_a_text_do_not_split_a_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"a": "one\u2028two\u0085"}, ensure_ascii=False) + "\n", encoding="utf-8")
    assert rows_of(path)[0].value == {"a": "one\u2028two\u0085"}


def test_json_files_hold_an_array_of_rows_or_one_row(tmp_path: Path) -> None:
    (tmp_path / "many.json").write_text('[{"a": 1}, {"a": 2}]')
    (tmp_path / "one.json").write_text('{"a": 1}')
    assert [row.value["a"] for row in rows_of(tmp_path / "many.json")] == [1, 2]
    assert [row.value["a"] for row in rows_of(tmp_path / "one.json")] == [1]


def test_csv_rows_have_the_columns_of_the_header_and_short_ones_are_schema_problems(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('a,b\n1,"two\nlines"\n3\n4,5\n')
    first, short, last = rows_of(path)
    assert first.value == {"a": "1", "b": "two\nlines"} and last.value == {"a": "4", "b": "5"}
    assert short.problem is not None and short.problem.kind == "schema" and short.where == "rows.csv:4"


def test_parquet_rows_are_plain_json_values(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": [1.5, float("nan")], "b": [["x"], None]}), path)
    assert [row.value for row in rows_of(path)] == [{"a": 1.5, "b": ["x"]}, {"a": None, "b": None}]


@given(st.lists(st.tuples(st.text(), st.integers(-5, 5) | st.none(), st.lists(st.text())), min_size=1, max_size=4))
def test_parquet_rows_as_json_are_what_the_row_alone_would_be(cells: list[tuple[str, int | None, list[str]]]) -> None:
    rows = [{"zip": text, "age": number, "Tags": texts, 'é"': text} for text, number, texts in cells]
    schema = pa.schema([("zip", pa.utf8()), ("age", pa.int64()), ("Tags", pa.list_(pa.utf8())), ('é"', pa.utf8())])
    found = list(read_batches([pa.RecordBatch.from_pylist(rows, schema)], "x"))
    assert [row.json() for row in found] == [canonical_json(row) for row in rows]
    assert [row.value for row in found] == rows


def test_numbers_and_dates_are_written_one_by_one_so_that_all_files_give_the_same_json(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"b": [1e16, 0.1], "a": pa.array([0, 1], pa.date32())}), path)
    assert [row.json() for row in rows_of(path)] == ['{"a":"1970-01-01","b":1e+16}', '{"a":"1970-01-02","b":0.1}']


def test_only_the_columns_that_are_needed_are_read_where_the_file_has_them_all(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": [1], "b": [2], "c": [3]}), path)
    assert rows_of(path, columns=["c", "a"])[0].value == {"a": 1, "c": 3}
    assert rows_of(path, columns=["c", "d"])[0].value == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_csv_file_with_other_separators_is_refused_with_what_to_do(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"id{separator}text\n1{separator}x\n", encoding="utf-8")
    with pytest.raises(SourceError, match="expected columns separated by commas, found the one column 'id"):
        list(read_file(path, "rows.csv"))


def test_text_of_a_parquet_file_that_is_not_utf8_is_a_problem_of_its_row_only(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": pa.array([b"x", b"\xff", b"y"], pa.binary()).view(pa.utf8())}), path)
    first, bad, last = rows_of(path)
    assert (first.value, last.value) == ({"a": "x"}, {"a": "y"})
    assert bad.problem is not None and bad.problem.kind == "parse" and bad.where == "rows.parquet:2"


def test_the_files_of_a_folder_are_read_by_name_and_numbered_through(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "b.jsonl", [{"a": 3}])
    write_jsonl(tmp_path / "a.jsonl", [{"a": 1}, {"a": 2}])
    (tmp_path / "notes.md").write_text("not data")
    assert [(row.index, row.where, row.value["a"]) for row in rows_of(tmp_path)] == [
        (0, "a.jsonl:1", 1),
        (1, "a.jsonl:2", 2),
        (2, "b.jsonl:1", 3),
    ]


def test_a_limit_takes_the_first_rows(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"a": n} for n in range(10)])
    assert [row.value["a"] for row in rows_of(path, source={"limit": 3})] == [0, 1, 2]


def test_a_limit_reads_no_row_beyond_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 3 + b"\xff\n")
    assert len(rows_of(path, source={"limit": 3}, required=["a"], where={"a": ["1"]})) == 3


@pytest.fixture
def downloaded(tmp_path: Path) -> Path:
    """A folder as `hf download` leaves it."""
    for name in ("data/train-00000-of-00002", "data/train-00001-of-00002", "data/test-00000-of-00001"):
        file = tmp_path / f"{name}.jsonl"
        file.parent.mkdir(exist_ok=True)
        write_jsonl(file, [{"a": name}])
    (tmp_path / ".cache").mkdir()
    write_jsonl(tmp_path / ".cache" / "train.jsonl", [{"a": "not data"}])
    (tmp_path / "README.md").write_text("# A dataset\n")
    (tmp_path / "dataset_infos.json").write_text("{}")
    return tmp_path


def test_a_downloaded_dataset_is_read_split_by_split(downloaded: Path) -> None:
    assert [row.where for row in rows_of(downloaded, source={"split": "train"})] == [
        "data/train-00000-of-00002.jsonl:1",
        "data/train-00001-of-00002.jsonl:1",
    ]
    assert [row.value["a"] for row in rows_of(downloaded, source={"split": "test"})] == ["data/test-00000-of-00001"]
    assert len(rows_of(downloaded)) == 3
    with pytest.raises(SourceError, match=r"no file of the split 'val'.*found data/test-00000"):
        rows_of(downloaded, source={"split": "val"})


def test_a_split_is_what_the_readme_of_a_dataset_declares(downloaded: Path) -> None:
    files = "[{split: train, path: data/test*}, {split: all, path: ['data/*.jsonl']}]"
    (downloaded / "README.md").write_text(f"---\nconfigs:\n- config_name: default\n  data_files: {files}\n---\n# X\n")
    assert [row.value["a"] for row in rows_of(downloaded, source={"split": "train"})] == ["data/test-00000-of-00001"]
    assert len(rows_of(downloaded, source={"split": "all"})) == 3


@pytest.mark.parametrize("head", ["", "---\nconfigs: 7\n---\n", "---\n- [\n---\n", "---\nlicense: mit\n---\n"])
def test_a_readme_that_declares_no_files_leaves_the_split_to_the_file_names(downloaded: Path, head: str) -> None:
    (downloaded / "README.md").write_text(head)
    assert len(rows_of(downloaded, source={"split": "train"})) == 2


def test_rows_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 200 + b"\xff\n")
    rows = open_source(Source(path=str(path)))
    assert [next(rows).value for _ in range(200)] == [{"a": 1}] * 200
    with pytest.raises(SourceError, match="not UTF-8"):
        next(rows)


def test_an_absent_file_is_told_with_near_names(tmp_path: Path) -> None:
    (tmp_path / "personas.jsonl").write_text("{}")
    with pytest.raises(SourceError, match=r"does not exist \(did you mean 'personas.jsonl'\?"):
        rows_of(tmp_path / "persona.jsonl")
    with pytest.raises(SourceError, match="nor does its folder"):
        rows_of(tmp_path / "nowhere" / "persona.jsonl")


@pytest.mark.parametrize("content", [b"", b"\n\n  \n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(SourceError, match="is empty: expected rows"):
        rows_of(path)


def test_a_gzip_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    whole = gzip.compress("".join(f'{{"a": {n}}}\n' for n in range(5000)).encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=r"not a whole gzip file.*fetch it again"):
        rows_of(path)


def test_a_file_that_is_no_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_text('{"a": 1}\n')
    with pytest.raises(SourceError, match="not a whole gzip file"):
        rows_of(path)


def test_a_parquet_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(SourceError, match="cannot be read as parquet"):
        rows_of(path)


def test_text_that_is_not_utf8_is_refused_with_the_byte_offset(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n' + '{"a": "中"}\n'.encode("gb18030"))
    with pytest.raises(SourceError, match=r"byte 0xd6 at byte offset 16.*iconv"):  # 9 bytes, then 7 of {"a": "
        rows_of(path)


def test_a_json_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('{"a": 1}\n{"a": 2}\n')
    with pytest.raises(SourceError, match=r"is named \.jsonl"):
        rows_of(path)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.docx"
    path.write_text("x")
    with pytest.raises(SourceError, match=r"expected \.jsonl"):
        find_files(path)


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("x")
    with pytest.raises(SourceError, match=r"found readme\.txt"):
        find_files(tmp_path)


def test_a_column_that_no_row_has_is_missing_from_the_source(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"uid": 1, "text": "x"}] * 3)
    with pytest.raises(SourceError, match=r"lacks the column 'uuid'; found the columns uid, text \(did you mean 'uid'"):
        rows_of(path, required=["uuid"])


def test_a_column_that_one_row_lacks_is_a_problem_of_that_row(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"a": 1}, {"b": 1}, 7])
    good, lacking, number = rows_of(path, required=[("a", "A")])
    assert good.problem is None
    assert lacking.problem is not None and lacking.problem.reason == "expected the column 'a' or 'A', found b"
    assert number.problem is not None and number.problem.kind == "schema"


def test_rows_that_a_filter_leaves_out_are_still_counted(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"c": "USA"}, {"c": "Canada"}, {"c": "United States"}])
    rows = rows_of(path, where={"c": ["USA", "United States"]})
    assert [row.problem.kind if row.problem else row.value["c"] for row in rows] == ["USA", "filter", "United States"]


def test_a_filter_that_selects_nothing_shows_the_values_there_are(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"c": "USA"}, {"c": "USA"}, {"c": "Canada"}])
    with pytest.raises(SourceError, match=r"selects none of its 3 rows.*'USA' \(2\), 'Canada' \(1\)"):
        rows_of(path, where={"c": ["United States"]})


def test_rejects_of_two_sources_with_one_file_name_have_keys_of_their_own() -> None:
    rejects, row, problem = (
        SourceRejects("personas"),
        SourceRow(0, "rows.jsonl:3", {"a": "b" * 9000}),
        Problem("schema", "x"),
    )
    first, second, again = (rejects.make(source, row, problem) for source in ("p", "q", "p"))
    assert (first.row_key, second.row_key, again.row_key) == ("rows.jsonl:3", "rows.jsonl:3#2", "rows.jsonl:3")
    assert first.payload is not None and len(first.payload) < 4100


def test_a_hub_dataset_out_of_reach_is_told_with_the_way_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    source = Source(hub="allenai/soda", revision="abc123")
    with pytest.raises(SourceError, match=r"127\.0\.0\.1 does not answer.*hf download allenai/soda.*`path: FOLDER`"):
        list(open_source(source))
    with pytest.raises(SourceError, match="does not answer"):
        list(open_source(source, hub_file="train.jsonl.gz"))


def test_the_hub_is_not_asked_when_the_user_said_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert hub_problem("http://127.0.0.1:9") == "HF_HUB_OFFLINE is set"


@pytest.fixture
def refusing_server() -> Iterator[str]:
    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_hub_that_answers_anything_is_in_reach(refusing_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert hub_problem(refusing_server) is None


def test_a_folder_is_entered_once_whatever_links_lead_to_it(tmp_path: Path) -> None:
    (tmp_path / "loop" / "sub").mkdir(parents=True)
    (tmp_path / "loop" / "sub" / "a.jsonl").write_text('{"x": 1}\n')
    for name in ("l", "m"):
        (tmp_path / "loop" / "sub" / name).symlink_to("..")
    assert [file.name for file in find_files(tmp_path / "loop")] == ["a.jsonl"]


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text,id\n1,x,2\n")
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    pq.write_table(twice, tmp_path / "b.parquet")
    for name in ("a.csv", "b.parquet"):
        with pytest.raises(SourceError, match="expected each column once, found 'id' more than once"):
            list(open_source(Source(path=str(tmp_path / name))))


def test_a_quote_that_is_not_closed_says_how_much_it_takes_in(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,text\n1,x\n2,"y\n3,z\n4,w\n')
    *_, last = open_source(Source(path=str(tmp_path / "a.csv")))
    assert last.problem is not None and "it takes in 3 lines: a quote is not closed" in last.problem.reason


ODD = {
    "dates in a list": pa.array([[9_000_000, 1], [2]], pa.list_(pa.date32())),
    "dates in pairs": pa.array([[9_000_000, 1], [2, 3]], pa.list_(pa.date32(), 2)),
    "dates in a map": pa.array([[("a", 9_000_000)], [("b", 1)]], pa.map_(pa.string(), pa.date32())),
    "dates in a dictionary": pa.array([9_000_000, 1], pa.date32()).dictionary_encode(),
    "milliseconds before the year 1": pa.array([-(2**60), 1], pa.timestamp("ms")),
    "days as milliseconds": pa.array([2**60, 1], pa.date64()),
    "a zone that is a folder": pa.array([1, 2], pa.timestamp("us", "Europe")),
    "a zone that is an impossible offset": pa.array([1, 2], pa.timestamp("us", "+99:99")),
    "a zone in a struct": pa.array([{"at": 1}, {"at": 2}], pa.struct([("at", pa.timestamp("us", "Moon/Base"))])),
    "a long time": pa.array([-(2**62), 1], pa.duration("ms")),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_value_that_python_cannot_hold_is_text_and_stops_nothing(odd: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["first", "second"], "when": ODD[odd]}), tmp_path / "rows.parquet")
    first, second = open_source(Source(path=str(tmp_path / "rows.parquet")))
    assert [first.problem, second.problem] == [None, None]
    assert [first.value["text"], second.value["text"]] == ["first", "second"]
    assert json.loads(first.json())["when"]


def test_text_that_is_not_utf8_is_still_a_reject_beside_a_value_that_python_cannot_hold() -> None:
    text = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff"))
    batch = pa.record_batch({"text": text, "when": pa.array([9_000_000, 1], pa.date32())})
    first, second = read_batches([batch], "x")
    assert first.value == {"text": "a", "when": "26611-03-02"}
    assert second.problem is not None and "expected UTF-8 text" in second.problem.reason


@pytest.mark.parametrize("odd", ["1e999", "NaN", "-Infinity", "9" * 5000, '"\\ud800"', "[" * 60 + "]" * 60])
def test_a_row_of_a_json_array_that_no_table_can_hold_is_the_only_reject(odd: str, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(f'[{{"id": 0}}, {{"id": 1, "odd": {odd}}}, {{"id": 2}}]')
    first, middle, last = open_source(Source(path=str(tmp_path / "rows.json")))
    assert first.value == {"id": 0} and last.value == {"id": 2}
    assert middle.problem is not None and middle.problem.kind == "parse"


NAMES = ["[x]", "a[0-9]", "who?", "*", "it's", 'say "so"', "100 %#", " blank ", "éü 对话", "new\nline", "~"]


@pytest.mark.parametrize("name", NAMES)
def test_source_files_may_have_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    row = {"text": "hello"}
    (folder / f"{name}.train.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    pq.write_table(pa.Table.from_pylist([row]), folder / f"{name}.train.parquet")
    (folder / "other.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    named = json.dumps([f"{name}.train.jsonl", f"{name}.train.parquet"])
    (folder / "README.md").write_text(
        f"---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n    path: {named}\n---\n",
        encoding="utf-8",
    )
    files = find_files(folder, "train")
    assert [file.name for file in files] == [f"{name}.train.jsonl", f"{name}.train.parquet"]
    for file in files:
        assert [found.value for found in rows_of(file)] == [row]
    assert [found.value for found in rows_of(folder, source={"split": "train"})] == [row, row]
