"""The stub endpoint that rehearsals ask: its answers are as good as those of a model that keeps to its schema."""

from __future__ import annotations

import json

import pytest

from flows import chain
from tasks.foundation.llm.prompts import Prompt
from tasks.foundation.llm.reply import read, schema_of
from tasks.foundation.settings import load_settings
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.replies import Manner, bind
from tests.fakes.schema_server import Endpoint

PROMPTS = [prompt for name in chain.names() for prompt in chain.stage(name).prompts if prompt.reply_model]
ENDPOINT = Endpoint(0)


def body(schema: object, said: str) -> bytes:
    wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
    return json.dumps({"messages": [{"role": "system", "content": said}], "response_format": wanted}).encode()


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.path)
def test_its_answers_fit_what_every_prompt_asks_for(prompt: Prompt, language: Language) -> None:
    assert prompt.reply_model is not None
    model = bind(prompt.reply_model, Manner(load_settings("eyt-paper").text_limits, language))
    for number in range(40):
        cut: list[str] = []
        read(
            ENDPOINT.answer(body(schema_of(model), f"{'你好' if language == 'zh' else 'Hello'} {number}")),
            model,
            "stop",
            cut,
        )
        assert not cut


def test_another_body_gets_another_answer_and_the_same_body_the_same() -> None:
    schema = {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]}
    answers = {ENDPOINT.answer(body(schema, f"Hello {number}")) for number in range(50)}
    assert len(answers) > 40
    assert ENDPOINT.answer(body(schema, "Hello 1")) == ENDPOINT.answer(body(schema, "Hello 1"))
