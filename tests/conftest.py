"""Settings of every test: nothing outside temporary folders is written, nothing is timed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("colloquy", deadline=None, derandomize=True)
hypothesis.settings.load_profile("colloquy")

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("PREFECT_HOME", str(Path(tempfile.gettempdir()) / "colloquy-tests-prefect"))


@pytest.fixture(autouse=True)
def _artifacts_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that forgets to say where writes to its own folder, never to the checkout's."""
    monkeypatch.setenv("COLLOQUY_ARTIFACTS", str(tmp_path / "artifacts"))
    monkeypatch.delenv("COLLOQUY_PROFILE", raising=False)


@pytest.fixture(scope="session")
def real_rows() -> Path:
    """Rows of the real sources, where somebody has put them; tests that need them skip otherwise."""
    here = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("COLLOQUY_REAL_ROWS") or here.parent / "shared" / "data" / "real_rows")
    if not folder.is_dir():
        pytest.skip(f"no rows of the real sources in {folder}")
    return folder
