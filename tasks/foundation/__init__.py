"""What every stage stands on. Knows neither Prefect nor any stage."""

from __future__ import annotations

from pathlib import Path

_PACKED = Path(__file__).resolve().parent / "packed"

INSTALLED = _PACKED.is_dir()
"""Whether this is what a wheel has put there (see setup.py), and not a checkout."""
ROOT = _PACKED if INSTALLED else Path(__file__).resolve().parents[2]
"""Where what comes with the code is (configs, prompts, SQL): the checkout, or a folder of the installed package."""
FOLDER = Path.cwd() if INSTALLED else ROOT
"""Where artifacts go and relative paths of settings start: the checkout, or the current folder if `INSTALLED`."""
CONFIGS = ROOT / "configs"


def locate(path: str | Path) -> Path:
    """A path of the settings, absolute: of `FOLDER`, or what came with the code under this name where there is none."""
    mine, shipped = FOLDER / path, ROOT / path
    return shipped if shipped.exists() and not mine.exists() else mine
