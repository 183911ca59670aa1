"""inspect_ai: an evaluation of one task, its samples answered under a response schema and read back from the log.

`max_connections` and `max_samples` are the number in flight. The terminal display, the live view of the log and its
two servers are off; the log with the transcript of every sample is written, as it always is.
"""

from __future__ import annotations

import argparse
import os

os.environ["INSPECT_LOG_LEVEL"] = "error"

import contest
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, ResponseSchema, get_model
from inspect_ai.solver import generate, system_message
from inspect_ai.util import json_schema


def ask(options: argparse.Namespace) -> list[contest.Verdict]:
    samples = MemoryDataset([Sample(input=contest.prompt(number)) for number in range(options.requests)])
    schema = ResponseSchema(name="Verdict", json_schema=json_schema(contest.Verdict))
    config = GenerateConfig(max_connections=options.in_flight, max_tokens=100, temperature=0.0, response_schema=schema)
    model = get_model(
        f"openai/{contest.MODEL}", base_url=options.url, api_key=contest.API_KEY, config=config, responses_api=False
    )
    task = Task(dataset=samples, solver=[system_message(contest.SYSTEM), generate(cache=False)])
    log = eval(
        task,
        model=model,
        max_samples=options.in_flight,
        display="none",
        log_dir=options.folder,
        log_realtime=False,
        acp_server=False,
        ctl_server=False,
    )[0]
    return [contest.Verdict.model_validate_json(sample.output.completion) for sample in log.samples or []]


if __name__ == "__main__":
    contest.run("inspect_ai", ask)
