"""The peers, each in a virtual environment of its own: in the project's they would change what it runs on.

About 3 GB in all, no torch.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import platformdirs

FOLDER = Path(platformdirs.user_cache_dir("colloquy")) / "bench"
PEERS = {
    "curator": ("bespokelabs-curator==0.1.31",),
    "distilabel": ("distilabel[openai]==1.5.3", "openai==3.57.0", "requests==2.34.2"),
    "data-designer": ("data-designer==0.9.7",),
    "inspect-ai": ("inspect_ai==0.3.285", "openai==3.57.0"),
}
"""Name → what pip installs. The OpenAI SDK is the engine's version where the peer leaves the choice; distilabel
imports requests without asking for it."""


def python_of(peer: str) -> Path:
    """The peer's interpreter; it may not exist."""
    return FOLDER / peer / "bin" / "python"


def installed(peer: str) -> bool:
    """Whether the peer's environment holds what is asked for here."""
    try:
        return _marker(peer).read_text(encoding="utf-8") == _wanted(peer)
    except FileNotFoundError:
        return False


def install(peer: str) -> None:
    """Makes the environment anew; CalledProcessError when pip fails."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", FOLDER / peer], check=True)
    pip = [python_of(peer), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *PEERS[peer]], check=True)
    _marker(peer).write_text(_wanted(peer), encoding="utf-8")


def _marker(peer: str) -> Path:
    return FOLDER / peer / "installed.txt"


def _wanted(peer: str) -> str:
    return "\n".join(PEERS[peer]) + "\n"
