"""NeMo Data Designer: a seed table of rows and one structured column, its concurrency limit set to what is asked.

It asks for JSON in words and reads a fenced block, so the server answers it with one. Metrics endpoint and telemetry
are off, the progress log is quiet, the profile of the result (made after the run) is part of `create`.
"""

from __future__ import annotations

import argparse
import logging
import os

os.environ |= {"NEMO_TELEMETRY_ENABLED": "false", "HF_HUB_OFFLINE": "1"}

import contest
import data_designer.config as dd
import pandas as pd
from data_designer.interface import DataDesigner


def ask(options: argparse.Namespace) -> list[dict]:
    os.environ["DATA_DESIGNER_HOME"] = options.folder
    model = dd.ModelConfig(
        alias="judge",
        model=contest.MODEL,
        provider="bench",
        inference_parameters=dd.ChatCompletionInferenceParams(
            max_tokens=100, temperature=0.0, max_parallel_requests=options.in_flight
        ),
        skip_health_check=True,
    )
    config = dd.DataDesignerConfigBuilder(model_configs=[model])
    config.with_seed_dataset(dd.DataFrameSeedSource(df=pd.DataFrame({"number": range(options.requests)})))
    config.add_column(
        dd.LLMStructuredColumnConfig(
            name="verdict",
            model_alias="judge",
            system_prompt=contest.SYSTEM,
            prompt=contest.prompt("{{ number }}"),
            output_format=contest.Verdict,
        )
    )
    provider = dd.ModelProvider(name="bench", endpoint=options.url, provider_type="openai", api_key=contest.API_KEY)
    designer = DataDesigner(artifact_path=options.folder, model_providers=[provider])
    designer.set_run_config(dd.RunConfig(otel_metrics_port=None))
    logging.getLogger("data_designer").setLevel(logging.WARNING)
    table = designer.create(config, num_records=options.requests).load_dataset()
    return list(table["verdict"])


if __name__ == "__main__":
    contest.run("data-designer", ask)
