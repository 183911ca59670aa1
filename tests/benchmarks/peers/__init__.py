"""Other libraries that send structured requests, measured against the same endpoint as the engine.

python -m tests.benchmarks.peers.install      environments of their own (make bench-peers)
python -m tests.benchmarks.peers              one line of JSON a peer
peers.measure(in_flight=64, requests=2000)    the same from Python
"""

from .run import ask_endpoint, endpoint, measure

__all__ = ["ask_endpoint", "endpoint", "measure"]
