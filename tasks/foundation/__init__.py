"""What every stage stands on. Knows neither Prefect nor any stage."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout: relative paths in settings start here."""
CONFIGS = ROOT / "configs"
