"""Prompt files, their inputs and their languages agree."""

from __future__ import annotations

from collections import Counter

import pytest

from flows.chain import chain
from tasks.foundation.llm.prompts import PROMPTS, Prompt
from tasks.foundation.tables.languages import LANGUAGES

BOUND: list[Prompt] = [prompt for stage in chain() for prompt in stage.prompts]


def test_every_prompt_file_is_bound_exactly_once() -> None:
    files = {str(path.relative_to(PROMPTS)) for path in PROMPTS.rglob("*.yaml")}
    bound = Counter(f"{prompt.path}.{language}.yaml" for prompt in BOUND for language in LANGUAGES)
    assert set(bound) == files
    assert set(bound.values()) <= {1}


@pytest.mark.parametrize("prompt", BOUND, ids=lambda prompt: prompt.path)
def test_templates_use_exactly_their_inputs_in_every_language(prompt: Prompt) -> None:
    prompt.check()


@pytest.mark.parametrize("prompt", BOUND, ids=lambda prompt: prompt.path)
def test_the_languages_of_a_prompt_use_the_same_delimiters(prompt: Prompt) -> None:
    from tasks.foundation.llm.prompts import _find_tags

    english, chinese = (_find_tags(prompt._file(language)) for language in LANGUAGES)
    assert english == chinese
