"""Drives one stage of one build: opens it, deals its rows to shards, commits what came out.

Knows files, locks and the engine; knows neither Prefect nor any particular stage. The flows call
`StageRun.open`, then `prepare`, `work` for every shard, and `commit`.
"""
