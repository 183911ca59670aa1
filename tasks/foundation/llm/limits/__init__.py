"""How fast one model may be asked: requests and tokens a minute, calls in flight, pauses after trouble.

A `Gate` stands before each (provider, model, base URL, key) and is shared by all stages and shards of a
process. It is told what the account allows (configs/models.yaml, response headers) and learns the rest.
"""

from tasks.foundation.llm.limits.gate import Gate, Permit, Result
from tasks.foundation.llm.limits.gates import Gates, gates_of_process

__all__ = ["Gate", "Gates", "Permit", "Result", "gates_of_process"]
