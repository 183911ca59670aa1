"""Which models there are: configs/models.yaml → alias → ModelSpec.

One entry of the file::

    gpt-4o:
      provider: openai
      name: gpt-4o-2024-08-06
      family: gpt
      api_key_env: OPENAI_API_KEY

Keys are never in the file: `api_key_env` names the environment variable that holds one, and it is
read when the provider's client is made.
"""

from __future__ import annotations

import difflib
import os
import re
import unicodedata
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tasks.foundation import weights
from tasks.foundation.errors import ConfigError, ModelUnavailable
from tasks.foundation.llm.request import LOCAL_PROVIDERS, ModelSpec
from tasks.foundation.settings.strict_yaml import load_yaml

MODELS_FILE = Path(__file__).parents[3] / "configs" / "models.yaml"

KEYLESS = "no-key"
"""Sent where the endpoint wants none; the SDKs insist on a value."""


_NO_PART_OF_A_KEY = re.compile(r"[^!-~]")
"""A key goes into an HTTP header, which takes no line break and nothing beyond ASCII; a blank was pasted with it."""


class Prices(BaseModel):
    """US dollars per million tokens. Input that is read from the provider's cache or written to it costs
    `input_per_million` unless it has its own price."""

    model_config = ConfigDict(extra="forbid")

    input_per_million: float = Field(ge=0, allow_inf_nan=False)
    cached_input_per_million: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cache_write_per_million: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    output_per_million: float = Field(ge=0, allow_inf_nan=False)


class ModelEntry(BaseModel):
    """One alias as written in the file; the fields are those of ModelSpec."""

    model_config = ConfigDict(extra="forbid")

    provider: Literal["openai", "google", "embedded", "scripted"]
    name: str = Field(min_length=1)
    family: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    access: Literal["open", "closed"] = "closed"
    base_url: str | None = None
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Z][A-Z0-9_]*$")
    structured: Literal["json_schema", "json_object", "prompt"] = "json_schema"
    thinking: bool = False
    thinking_pair: str | None = None
    max_in_flight: int = Field(default=8, ge=1)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    batch: bool = False
    context_tokens: int | None = Field(default=None, ge=256)
    timeout_seconds: float = Field(default=120.0, gt=0)
    supports_seed: bool = True
    sends_temperature: bool = True
    strict_schema: bool = False
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    api_version: str | None = None
    slots: int = Field(default=4, ge=1, le=64)
    threads: int = Field(default=1, ge=1)
    extra_body: dict[str, Any] = Field(default_factory=dict)
    prices: Prices | None = None
    batch_share: float | None = Field(default=None, gt=0, le=1)
    retired: date | None = None
    successor: str | None = None

    @field_validator("base_url")
    @classmethod
    def no_credentials(cls, value: str | None) -> str | None:
        """A URL is written to tables and shown in reports, so it may hold neither user nor query."""
        if value is None:
            return None
        parts = urlsplit(value)
        try:
            _ = parts.port
        except ValueError as error:
            raise ValueError(f"expected a port of 0 to 65535 ({error})") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected a URL like http://localhost:8000/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError("a base_url holds no user, password or query; keys go through api_key_env")
        return value.rstrip("/")

    @model_validator(mode="after")
    def only_what_applies(self) -> ModelEntry:
        if self.provider in LOCAL_PROVIDERS and (self.base_url or self.api_key_env):
            raise ValueError(f"a model of provider {self.provider!r} takes no base_url and no api_key_env")
        if self.provider == "google" and not self.api_key_env:
            raise ValueError("a model of provider 'google' needs api_key_env")
        if self.provider in LOCAL_PROVIDERS and self.batch:
            raise ValueError(f"provider {self.provider!r} has no batch API")
        return self


class ModelsFile(BaseModel):
    """The whole file: `models:` maps each alias to its entry."""

    model_config = ConfigDict(extra="forbid")

    models: dict[str, ModelEntry]


class Models(dict[str, ModelSpec]):
    """Aliases in file order. Asking for an unknown one raises ConfigError naming the nearest."""

    def __missing__(self, alias: str) -> ModelSpec:
        raise ConfigError(unknown_alias(alias, self))


def load_models(path: Path | str = MODELS_FILE) -> Models:
    """The aliases of the file; ConfigError with file, alias and field when it is wrong."""
    path = Path(path)
    try:
        content = load_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"Expected the list of models in {path}: there is no such file.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from None
    return parse_models(content, str(path))


def _check_pair(spec: ModelSpec, models: Models, where: str) -> None:
    if spec.thinking_pair is None:
        return
    if spec.thinking_pair not in models:
        raise ConfigError(f"{where}: thinking_pair of {spec.alias!r}. " + unknown_alias(spec.thinking_pair, models))
    other = models[spec.thinking_pair]
    if other.thinking_pair != spec.alias or other.thinking == spec.thinking:
        raise ConfigError(
            f"{where}: expected {spec.alias!r} and its thinking_pair {other.alias!r} to name one another, the one with "
            f"`thinking: true` and the other without; found {other.alias!r} with thinking_pair "
            f"{other.thinking_pair!r} and thinking {str(other.thinking).lower()}."
        )


def parse_models(content: Any, where: str = "models") -> Models:
    """`content` (as read from YAML) as specs; `where` names it in errors."""
    try:
        entries = ModelsFile.model_validate(content).models
    except ValidationError as error:
        raise ConfigError(f"{where} is wrong:\n{_problems(error)}") from None
    models = Models({alias: _spec(alias, entry) for alias, entry in entries.items()})
    for spec in models.values():
        _check_pair(spec, models, where)
        if spec.successor is not None and spec.successor not in models:
            raise ConfigError(f"{where}: successor of {spec.alias!r}. " + unknown_alias(spec.successor, models))
    return models


def unknown_alias(alias: str, models: Mapping[str, ModelSpec]) -> str:
    """The sentence for an alias that does not exist, with the nearest ones that do."""
    near = difflib.get_close_matches(alias, models, n=3, cutoff=0.5)
    hint = f"Did you mean {', '.join(repr(name) for name in near)}?" if near else f"Known: {', '.join(models)}."
    return f"Expected a model alias of configs/models.yaml, found {alias!r}. {hint}"


def api_key(spec: ModelSpec, environment: Mapping[str, str] = os.environ) -> str:
    """The key of this model, or `KEYLESS` where none is configured; ModelUnavailable when it is not set or no key."""
    if spec.api_key_env is None:
        return KEYLESS
    if trouble := _key_trouble(spec, environment):
        raise ModelUnavailable(trouble)
    return environment[spec.api_key_env]


def retirement(spec: ModelSpec, today: date | None = None) -> str | None:
    """The sentence for a model that its provider has shut down by `today`, or None."""
    if spec.retired is None or (today or date.today()) < spec.retired:
        return None
    instead = f"; {spec.successor} stands in for it" if spec.successor else ""
    return (
        f"Model {spec.alias!r} ({spec.name}) was shut down by its provider on {spec.retired}{instead}. "
        "Choose another model; replies that are in the cache can be replayed with llm.replay_only=true."
    )


def check_ready(spec: ModelSpec, environment: Mapping[str, str] = os.environ, today: date | None = None) -> str | None:
    """Why the model cannot be called (shut down, no key, no weights), or None. Uses no network and prints no key."""
    if gone := retirement(spec, today):
        return gone
    if trouble := _key_trouble(spec, environment):
        return trouble
    if spec.provider == "embedded":
        return weights.missing(spec.name, spec.alias)
    if spec.provider == "scripted":
        from tasks.foundation.llm.providers.scripted import resolve

        try:
            resolve(spec.name)
        except ConfigError as error:
            return str(error)
    return None


def _key_trouble(spec: ModelSpec, environment: Mapping[str, str]) -> str | None:
    """Why the model's key cannot be sent, in words without the key; None: it can, or none is wanted."""
    if spec.api_key_env is None:
        return None
    key = environment.get(spec.api_key_env, "")
    if not key.strip():
        found = "which is not set"
    elif key[0] in "'\"" or key[-1] in "'\"":
        found = "which stands in quotes there"
    elif odd := _NO_PART_OF_A_KEY.search(key):
        name = unicodedata.name(odd[0], f"U+{ord(odd[0]):04X}")
        found = f"whose character {odd.start() + 1} is {name}: expected ASCII without blanks or line breaks"
    else:
        return None
    return (
        f"Model {spec.alias!r} needs a key in the environment variable {spec.api_key_env}, {found}."
        f" Set it (export {spec.api_key_env}=…) or choose another model."
    )


def _spec(alias: str, entry: ModelEntry) -> ModelSpec:
    values = entry.model_dump(exclude={"prices"})
    prices = entry.prices.model_dump(exclude_none=True) if entry.prices else None
    return ModelSpec(alias=alias, prices=prices, **values)


def _problems(error: ValidationError) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_context=False):
        where = ".".join(str(step) for step in problem["loc"])
        lines.append(f"  {where}: {problem['msg']} (found {problem['input']!r})")
    return "\n".join(lines)
