"""Puts configs, prompts and SQL into a wheel, as `tasks/foundation/packed`. All else stands in pyproject.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PACKED = ("configs", "prompts", "sql", "docs/differences.md", "prefect.yaml", "pyproject.toml")
"""What the code reads of a checkout besides itself (`ROOT` in tasks/foundation)."""


class Pack(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "tasks" / "foundation" / "packed"
        shutil.rmtree(target, ignore_errors=True)
        for name in PACKED:
            source = Path(__file__).parent / name
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target / name)


setup(cmdclass={"build_py": Pack})
