"""Where rows live: immutable Parquet parts, commits that make them visible, views that read them.

artifacts/store/scenes/build=2026-12/3f9a…/part-00007.parquet     one shard's rows of one table
artifacts/builds/2026-12/scenes.json                              the commit of one stage
artifacts/colloquy.duckdb                                         views over committed files
"""
