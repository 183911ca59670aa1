"""bespokelabs-curator: its online processor for OpenAI-compatible endpoints, no rate limit, nothing cached.

Concurrency is bounded by `max_concurrent_requests`; the limits a minute are set out of reach, because without them
curator assumes its defaults. Its live display and telemetry are off, as for any run in the background. It counts
tokens with tiktoken, whose vocabulary is read from the copy inside litellm instead of from the network.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from pathlib import Path

os.environ |= {
    "TIKTOKEN_CACHE_DIR": str(
        Path(importlib.util.find_spec("litellm").origin).parent / "litellm_core_utils" / "tokenizers"
    ),
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "TELEMETRY_ENABLED": "0",
    "CURATOR_VIEWER": "0",
    "CURATOR_DISABLE_CACHE": "1",
    "CURATOR_DISABLE_RICH_DISPLAY": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
}

import contest
from bespokelabs import curator


class Judge(curator.LLM):
    def prompt(self, row: dict) -> list[dict]:
        return [
            {"role": "system", "content": contest.SYSTEM},
            {"role": "user", "content": contest.prompt(row["number"])},
        ]

    def parse(self, row: dict, verdict: contest.Verdict) -> dict:
        return {"number": row["number"], "reason": verdict.reason, "score": verdict.score}


def ask(options: argparse.Namespace) -> list[dict]:
    judge = Judge(
        model_name=contest.MODEL,
        response_format=contest.Verdict,
        backend="openai",
        generation_params={"max_tokens": 100},
        backend_params={
            "base_url": options.url,
            "api_key": contest.API_KEY,
            "max_concurrent_requests": options.in_flight,
            "max_requests_per_minute": 10**7,
            "max_tokens_per_minute": 10**12,
        },
    )
    rows = [{"number": number} for number in range(options.requests)]
    return list(judge(rows, working_dir=options.folder).dataset)


if __name__ == "__main__":
    contest.run("bespokelabs-curator", ask)
