"""Prompts are data: prompts/<stage>/<name>.<lang>.yaml; Python only binds them to their inputs.

A file has `description`, `system` and `user`, rendered with jinja2 (sandboxed, undefined names are
errors). Text that comes from datasets or models stands between `<tag>` and `</tag>` in the template;
any such tag inside a value, and any control token of a chat template, is defused (see `defuse`), so that a text can
neither close its own delimiter nor open another, nor end its message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import jinja2
import jinja2.meta
import yaml
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel, ConfigDict, ValidationError

from tasks.foundation.errors import PromptError
from tasks.foundation.ids import digest
from tasks.foundation.llm.defuse import defused
from tasks.foundation.llm.request import Message
from tasks.foundation.settings.checkout import ROOT
from tasks.foundation.settings.strict_yaml import load_yaml
from tasks.foundation.tables.languages import LANGUAGES

PROMPTS = ROOT / "prompts"
_TAG = re.compile(r"</?([a-z][a-z0-9_]*)>", re.IGNORECASE)
_ENVIRONMENT = SandboxedEnvironment(
    undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False
)


class Inputs(BaseModel):
    """Base of what a prompt is given; its fields are exactly the template's variables."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class _PromptFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    description: str
    system: str
    user: str


I = TypeVar("I", bound=Inputs)  # noqa: E741 - reads as Prompt[Inputs, Reply]
R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Prompt(Generic[I, R]):
    """One prompt, bound once. `reply` is the model its answer is checked against (None: plain text,
    or a reply model made at run time)."""

    path: str
    inputs: type[I]
    reply: type[R] | None = None

    def render(self, language: str, inputs: I) -> tuple[Message, ...]:
        """System and user message; PromptError when a variable of the template has no value."""
        file = self._file(language)
        tags = _tags(file)
        values = {name: _defused(getattr(inputs, name), tags) for name in type(inputs).model_fields}
        try:
            system, user = (_compiled(text).render(values).strip() for text in (file.system, file.user))
        except jinja2.TemplateError as error:
            raise PromptError(f"prompt {self._path(language)} cannot be rendered: {error}") from None
        return (Message("system", system), Message("user", user))

    def defused(self, language: str, message: Message) -> Message:
        """A message of a chat's history, made harmless as the texts of this prompt are."""
        return Message(message.role, defused(message.content, _tags(self._file(language))))

    def check(self) -> None:
        """PromptError unless, in every language, the template's variables are the fields of `inputs`."""
        for language in LANGUAGES:
            file = self._file(language)
            used = _variables(file, self._path(language))
            declared = set(self.inputs.model_fields)
            if used - declared:
                raise PromptError(
                    f"prompt {self._path(language)} uses {_listed(used - declared)}, which {self.inputs.__name__} "
                    f"does not declare; it has {_listed(declared)}"
                )
            if declared - used:
                raise PromptError(
                    f"prompt {self._path(language)} does not use {_listed(declared - used)}, which "
                    f"{self.inputs.__name__} declares; use it or take it out"
                )

    @property
    def fingerprint(self) -> str:
        """Hash over the templates of all languages; descriptions aside."""
        return digest([[x, self._file(x).system, self._file(x).user] for x in LANGUAGES])

    def _path(self, language: str) -> Path:
        return PROMPTS / f"{self.path}.{language}.yaml"

    def _file(self, language: str) -> _PromptFile:
        return _read(self._path(language))


@cache
def _read(path: Path) -> _PromptFile:
    try:
        return _PromptFile.model_validate(load_yaml(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise PromptError(f"prompt {path}: expected description, system and user: {error}") from None


@cache
def _compiled(text: str) -> jinja2.Template:
    """The template of a text; compiling takes far longer than rendering."""
    return _ENVIRONMENT.from_string(text)


def _variables(file: _PromptFile, path: Path) -> set[str]:
    try:
        trees = [_ENVIRONMENT.parse(text) for text in (file.system, file.user)]
    except jinja2.TemplateSyntaxError as error:
        raise PromptError(f"prompt {path}, line {error.lineno}: {error.message}") from None
    return set().union(*(jinja2.meta.find_undeclared_variables(tree) for tree in trees))


def _tags(file: _PromptFile) -> frozenset[str]:
    """The names of the tags that a template delimits texts with."""
    return frozenset(name.lower() for text in (file.system, file.user) for name in _TAG.findall(text))


def _defused(value: Any, tags: frozenset[str]) -> Any:
    """`value` with its texts made harmless."""
    if isinstance(value, str):
        return defused(value, tags)
    if isinstance(value, BaseModel):
        return {name: _defused(getattr(value, name), tags) for name in type(value).model_fields}
    if isinstance(value, dict):
        return {name: _defused(inner, tags) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_defused(inner, tags) for inner in value]
    return value


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names))
