"""Installs peers, or measures the installed ones and prints one line of JSON each."""

from __future__ import annotations

import argparse
import json

from .install import FOLDER, PEERS, install, installed
from .run import measure

parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=__doc__)
parser.add_argument("peers", nargs="*", metavar="peer", help=f"of {', '.join(PEERS)}; none given: all")
parser.add_argument("--install", action="store_true", help=f"into {FOLDER}; what is there already stays")
parser.add_argument("--in-flight", type=int, default=64)
parser.add_argument("--requests", type=int, default=2000)
options = parser.parse_args()
if unknown := set(options.peers) - set(PEERS):
    parser.error(f"expected peers of {', '.join(PEERS)}, found {', '.join(sorted(unknown))}")
if options.install:
    for peer in options.peers or PEERS:
        print(f"{peer}: {' '.join(PEERS[peer])} in {FOLDER / peer}", flush=True)
        if not installed(peer):
            install(peer)
else:
    for found in measure(options.in_flight, options.requests, options.peers or None):
        print(json.dumps(found), flush=True)
