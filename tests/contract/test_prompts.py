"""Prompt files, their inputs and their languages agree."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.chain import chain
from tasks.foundation.llm.output_form import describe_form
from tasks.foundation.llm.prompts import PROMPTS, Prompt
from tasks.foundation.llm.reply import WORDS, read, schema_of, schema_with_words
from tasks.foundation.llm.schema_filler import SchemaFiller
from tasks.foundation.settings import load_settings
from tasks.foundation.settings.sections import TextLimitsSection
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.replies import Manner, PartsReply, bind

BOUND: list[Prompt] = [prompt for stage in chain() for prompt in stage.prompts]
ASKING = [prompt for prompt in BOUND if prompt.reply is not None]
LIMITS = load_settings("eyt-paper").text_limits
SMALL = load_settings("test").text_limits


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


STATED_IN_WORDS = {"interaction/speak"}
"""What a target says there has a limit in the prompt alone: nothing it says is cut or held back."""


def fields_in(schema: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every field of a schema with its name, and the items of lists under the name of their list."""
    if isinstance(schema, dict):
        for field, part in schema.get("properties", {}).items():
            yield field, part
            yield from fields_in(part, field)
        for inner in (schema.get("items"), *schema.get("anyOf", [])):
            if inner is not None:
                yield from fields_in(inner, name)


def texts_in(schema: Any) -> Iterator[Any]:
    """Every free text of a schema."""
    if isinstance(schema, list):
        for part in schema:
            yield from texts_in(part)
    elif isinstance(schema, dict):
        if schema.get("type") == "string" and not {"enum", "const"} & schema.keys():
            yield schema
        for part in schema.values():
            yield from texts_in(part)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("prompt", ASKING, ids=lambda prompt: prompt.path)
def test_every_field_of_a_reply_is_described_in_the_language_and_every_text_has_a_limit(
    prompt: Prompt, language: Language
) -> None:
    schema = schema_of(bind(prompt.reply_model, Manner(LIMITS, language)))
    wide = re.compile(r"[\u4e00-\u9fff]")
    for name, field in fields_in(schema):
        assert field.get("description"), name
        assert bool(wide.search(field["description"])) == (language == "zh"), (name, field["description"])
    assert '"x-' not in json.dumps(schema), "keys of ours are sent to nobody"
    assert all("maxLength" in text for text in texts_in(schema)) or prompt.path in STATED_IN_WORDS


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("prompt", ASKING, ids=lambda prompt: prompt.path)
def test_the_output_form_names_every_field_with_its_limit(prompt: Prompt, language: Language) -> None:
    model = bind(prompt.reply_model, Manner(LIMITS, language))
    form = describe_form(model, language)
    signs = 1 if language == "en" else 2
    for name, field in fields_in(schema_with_words(model)):
        assert re.search(rf"\b{name}\b", form), name
        if "maxLength" in field:
            assert str(signs * field[WORDS] if WORDS in field else field["maxLength"]) in form, name
    assert len(form) < 3500 and "None" not in form
    assert not re.search(r"[\u4e00-\u9fff] [\u4e00-\u9fff]", form), "no space stands within Chinese"


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12)
LONG = st.lists(TEXT, min_size=1, max_size=60).map(" ".join)


class Longwinded(SchemaFiller):
    """Fills every text with what `draw` gives, however long."""

    def __init__(self, draw: Callable[[], str]) -> None:
        super().__init__(random.Random(1))
        self._draw = draw

    def _string(self, schema: Any, name: str) -> str:
        return self._draw()


@settings(max_examples=15, deadline=None)
@pytest.mark.parametrize("prompt", ASKING, ids=lambda prompt: prompt.path)
@given(data=st.data(), times=st.sampled_from([1, 3, 40]))
def test_no_reply_that_is_right_but_long_is_refused(prompt: Prompt, data: st.DataObject, times: int) -> None:
    model = bind(prompt.reply_model, Manner(SMALL, "en"))
    plain = Longwinded(lambda: " ".join([data.draw(LONG)] * times)).fill(schema_of(model))
    cut: list[str] = []
    reply = read(json.dumps(plain), model, "stop", cut)
    if isinstance(reply, PartsReply):
        assert len(reply.parts) == len(model.model_fields) and not reply.lost
    if times == 40 and prompt.path.startswith(("personas", "scenes", "conflicts")):
        assert cut or len(json.dumps(plain)) < 5000


def test_a_changed_limit_is_a_change_of_the_stages_that_use_it_and_of_no_other() -> None:
    def users(name: str) -> set[str]:
        return {stage.name for stage in chain() if name in stage.limits}

    assert users("goal") == {"scenes", "voting", "chatseeds"}
    assert users("inspiration") == {"personas"}
    assert users("judge_words") == {"judging"}
    assert users("speech_words") == {"interaction"}
    assert set().union(*(stage.limits for stage in chain())) == set(TextLimitsSection.model_fields)
