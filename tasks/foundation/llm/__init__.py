"""The LLM engine: one request in, one checked answer out, nothing paid for twice."""
