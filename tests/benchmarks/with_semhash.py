"""Runs in semhash's own environment: vectors.npy and texts.json of a folder in, kept.json out."""

import json
import sys
import time
from pathlib import Path

import numpy as np
from semhash import SemHash

folder, threshold = Path(sys.argv[1]), float(sys.argv[2])
vectors = np.load(folder / "vectors.npy")
texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
records = [{"id": str(row), "text": text} for row, text in enumerate(texts)]
start = time.perf_counter()
index = SemHash.from_embeddings(vectors, records, model=None, columns=["text"])
kept = [int(record["id"]) for record in index.self_deduplicate(threshold=threshold).selected]
seconds = time.perf_counter() - start
(folder / "kept.json").write_text(json.dumps({"seconds": seconds, "kept": kept}), encoding="utf-8")
