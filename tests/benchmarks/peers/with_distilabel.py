"""distilabel: a pipeline of one loader and one text generation step.

A step sends one batch at once and waits for all of it: two replicas of the step with half a batch each overlap their
waits, and the loader hands over all rows at once, so that neither is kept waiting for the next batch. The schema goes
to the endpoint as it is (`extra_body`) and pydantic reads the replies: the documented way, through instructor,
rebuilds the model for every request and takes half as much computing again.
"""

from __future__ import annotations

import argparse
import os

os.environ |= {
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DISTILABEL_LOG_LEVEL": "WARNING",
}

import contest
from distilabel.models import OpenAILLM
from distilabel.pipeline import Pipeline
from distilabel.steps import LoadDataFromDicts, StepResources
from distilabel.steps.tasks import TextGeneration


def ask(options: argparse.Namespace) -> list[contest.Verdict]:
    schema = {"name": "Verdict", "schema": contest.Verdict.model_json_schema()}
    generation = {
        "max_new_tokens": 100,
        "temperature": 0.0,
        "extra_body": {"response_format": {"type": "json_schema", "json_schema": schema}},
    }
    replicas = min(2, options.in_flight)
    with Pipeline(name="bench", cache_dir=options.folder) as pipeline:
        rows = [{"instruction": contest.prompt(number)} for number in range(options.requests)]
        load = LoadDataFromDicts(data=rows, batch_size=len(rows))
        judge = TextGeneration(
            llm=OpenAILLM(
                model=contest.MODEL, base_url=options.url, api_key=contest.API_KEY, generation_kwargs=generation
            ),
            system_prompt=contest.SYSTEM,
            input_batch_size=options.in_flight // replicas,
            add_raw_input=False,
            add_raw_output=False,
            resources=StepResources(replicas=replicas),
        )
        load >> judge
    done = pipeline.run(use_cache=False)
    return [contest.Verdict.model_validate_json(row["generation"]) for row in done["default"]["train"]]


if __name__ == "__main__":
    contest.run("distilabel", ask)
