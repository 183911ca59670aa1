"""Measures the installed peers and prints one line of JSON each."""

from __future__ import annotations

import argparse
import json

from .install import PEERS
from .run import measure

parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=__doc__)
parser.add_argument("peers", nargs="*", metavar="peer", help=f"of {', '.join(PEERS)}; none given: all")
parser.add_argument("--in-flight", type=int, default=64)
parser.add_argument("--requests", type=int, default=2000)
options = parser.parse_args()
for found in measure(options.in_flight, options.requests, options.peers or None):
    print(json.dumps(found), flush=True)
