from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.foundation.errors import SourceError
from tasks.foundation.run import fingerprints
from tasks.foundation.run.fingerprints import SyntaxStore, changed, code_identity, files_identity


@pytest.fixture
def identity_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The code identity of a package of two modules, one of which imports a helper from outside it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(fingerprints, "_HASHED_AS_TREE", "fpr_")

    def make(stage: str = "def f():\n    return 1\n", helper: str = "X = 1\n") -> str:
        for package in ("fpr_stage", "fpr_helpers"):
            (tmp_path / package).mkdir(exist_ok=True)
            (tmp_path / package / "__init__.py").write_text("")
            sys.modules.pop(package, None)
        (tmp_path / "fpr_stage" / "task.py").write_text(f"from fpr_helpers import helper\n{stage}")
        (tmp_path / "fpr_helpers" / "helper.py").write_text(helper)
        for cached in (fingerprints._imports, fingerprints._module_file, fingerprints._tree_hash):
            cached.cache_clear()
        importlib.invalidate_caches()
        return code_identity("fpr_stage")

    return make


def test_comments_docstrings_and_layout_do_not_count(identity_with: Callable[..., str]) -> None:
    plain = identity_with()
    assert identity_with(stage='def f():\n    """Says one."""\n\n    # here\n    return (1)\n') == plain


def test_a_changed_constant_counts(identity_with: Callable[..., str]) -> None:
    assert identity_with() != identity_with(stage="def f():\n    return 2\n")


def test_a_changed_helper_is_not_missed(identity_with: Callable[..., str]) -> None:
    assert identity_with() != identity_with(helper="X = 2\n")


def test_a_stage_depends_on_the_foundation_modules_it_imports() -> None:
    modules = fingerprints._reachable(fingerprints._modules_of("tasks.foundation.run"))
    assert {"tasks.foundation.store.parts", "tasks.foundation.llm.reply", "tasks.foundation.ids"} <= set(modules)


def test_files_count_by_content(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("1")
    before = files_identity([file, "hub/name@rev"])
    file.write_text("2")
    assert files_identity([file, "hub/name@rev"]) != before
    with pytest.raises(SourceError, match=r"input file .*missing.jsonl cannot be read"):
        files_identity([tmp_path / "missing.jsonl"])


def test_what_changed_is_named() -> None:
    assert changed({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}) == ["b", "c"]


def test_what_a_module_says_is_kept_by_its_text_and_a_damaged_file_is_read_anew(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""A docstring."""\nimport os\nfrom tasks.foundation import ids\n', encoding="utf-8")
    first = SyntaxStore(tmp_path / "cache")
    imports, tree = first.of(module)
    assert imports == ["os", "tasks.foundation", "tasks.foundation.ids"]
    first.save()
    assert SyntaxStore(tmp_path / "cache").of(module) == (imports, tree)
    module.write_text(
        '"""Another docstring."""\n# a comment\nimport os\nfrom tasks.foundation import ids\n', encoding="utf-8"
    )
    assert SyntaxStore(tmp_path / "cache").of(module) == (imports, tree)
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_text('{"half', encoding="utf-8")
    assert SyntaxStore(tmp_path / "cache").of(module) == (imports, tree)
    module.write_text("import os\n", encoding="utf-8")
    assert SyntaxStore(tmp_path / "cache").of(module)[1] != tree
