"""How fast one model may be asked: requests and tokens a minute, calls in flight, pauses after trouble.

A `Gate` stands before each (provider, model, base URL, key) and is shared by all stages and shards of a
process. It is told what the account allows (configs/models.yaml, response headers) and learns the rest.
"""
