"""Which models there are: configs/models.yaml → alias → ModelSpec, and whether each can be called.

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
import socket
import unicodedata
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.dataclasses import dataclass

from tasks.foundation import ROOT
from tasks.foundation.errors import ConfigError, ModelUnavailable
from tasks.foundation.llm.providers import PROVIDERS, ProviderKind, Structured
from tasks.foundation.settings.strict_yaml import load_yaml

MODELS_FILE = ROOT / "configs" / "models.yaml"

KEYLESS = "no-key"
"""Sent where the endpoint wants none; the SDKs insist on a value."""

KNOCK_SECONDS = 5.0
"""Longer than a lost packet takes to be sent again, more than once."""

_NO_PART_OF_A_KEY = re.compile(r"[^!-~]")
"""A key goes into an HTTP header, which takes no line break and nothing beyond ASCII; a blank was pasted with it."""


class Prices(BaseModel):
    """US dollars per million tokens. Input that is read from the provider's cache or written to it costs
    `input_per_million` unless it has its own price."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input_per_million: float = Field(ge=0, allow_inf_nan=False)
    cached_input_per_million: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cache_write_per_million: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    output_per_million: float = Field(ge=0, allow_inf_nan=False)


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class ModelSpec:
    """One alias of configs/models.yaml; its fields are those of the entry."""

    alias: str
    provider: str
    """A kind of provider, one of `PROVIDERS`."""
    name: str = Field(min_length=1)
    """The vendor's name of the model; for `embedded` a name of the weights catalogue or a path to a GGUF file; for
    `scripted` the import path `module:function` of the callable that answers."""
    family: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    access: Literal["open", "closed"] = "closed"
    base_url: str | None = None
    """None: the provider's own endpoint."""
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Z][A-Z0-9_]*$")
    structured: Structured = "json_schema"
    """How its replies are held to a schema."""
    thinking: bool = False
    thinking_pair: str | None = None
    """The alias of the same model with the other switch."""
    max_in_flight: int = Field(default=8, ge=1)
    requests_per_minute: int | None = Field(default=None, ge=1)
    """The account's limit; None: unknown, learned from headers and refusals."""
    tokens_per_minute: int | None = Field(default=None, ge=1)
    """Prompt and completion tokens together; None: unknown."""
    batch: bool = False
    """Whether the endpoint has a batch API that the provider speaks (`mode: batch` on a stage)."""
    context_tokens: int | None = Field(default=None, ge=256)
    timeout_seconds: float = Field(default=120.0, gt=0)
    supports_seed: bool = True
    sends_temperature: bool = True
    """False for models that refuse the parameter (OpenAI's reasoning models)."""
    strict_schema: bool = False
    """OpenAI's `strict` flag on the JSON schema; off unless the endpoint is known to honour it."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    api_version: str | None = None
    """Google only; None: the version pinned in the provider."""
    slots: int = Field(default=4, ge=1, le=64)
    """Embedded only: replies generated side by side; each has `context_tokens` for itself."""
    threads: int = Field(default=1, ge=1)
    """Embedded only: CPU threads; more than one spins and slows everything else on the machine."""
    extra_body: Mapping[str, Any] = Field(default_factory=dict)
    """Merged into every request."""
    prices: Prices | None = None
    """None: what the vendor of the endpoint publishes, else unknown."""
    batch_share: float | None = Field(default=None, gt=0, le=1)
    """What a batched call costs, as a share of a live one; None: what the vendor publishes, else unknown."""
    retired: date | None = None
    """From this day on the provider answers no call; None: no such day is known."""
    successor: str | None = None
    """The alias of the model to ask instead of a retired one."""

    @field_validator("provider")
    @classmethod
    def _is_declared(cls, value: str) -> str:
        if value not in PROVIDERS:
            raise ValueError(f"expected one of {', '.join(PROVIDERS)}")
        return value

    @field_validator("base_url")
    @classmethod
    def _without_credentials(cls, value: str | None) -> str | None:
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
    def _only_what_applies(self) -> ModelSpec:
        kind = self.kind
        if kind.local and (self.base_url or self.api_key_env):
            raise ValueError(f"a model of provider {kind.name!r} takes no base_url and no api_key_env")
        if kind.needs_key and not self.api_key_env:
            raise ValueError(f"a model of provider {kind.name!r} needs api_key_env")
        if self.batch and kind.batches is None:
            raise ValueError(f"provider {kind.name!r} has no batch API")
        if self.structured not in kind.structured:
            raise ValueError(f"provider {kind.name!r} takes structured: {' or '.join(kind.structured)}")
        return self

    @property
    def kind(self) -> ProviderKind:
        return PROVIDERS[self.provider]

    @property
    def endpoint(self) -> str | None:
        """Where it is asked; None: in this process."""
        return self.base_url or self.kind.url

    @property
    def weights(self) -> str | None:
        """Its weights on this machine, by name; None: it runs elsewhere, or has none."""
        return self.name if self.kind.runs_weights else None

    def identity(self) -> dict[str, Any]:
        """What makes two aliases the same model to a fingerprint or the cache (no limits, no keys)."""
        return {
            "provider": self.provider,
            "name": self.name,
            "base_url": self.base_url,
            "structured": self.structured,
            "strict_schema": self.strict_schema,
            "sends_temperature": self.sends_temperature,
            "thinking": self.thinking,
            "extra_body": dict(self.extra_body),
        }


class ModelsFile(BaseModel):
    """The whole file: `models:` maps each alias to its entry."""

    model_config = ConfigDict(extra="forbid")

    models: dict[str, ModelSpec]

    @field_validator("models", mode="before")
    @classmethod
    def _with_aliases(cls, entries: Any) -> Any:
        if not isinstance(entries, dict):
            return entries
        if named := [alias for alias, entry in entries.items() if isinstance(entry, dict) and "alias" in entry]:
            raise ValueError(f"{', '.join(named)}: the alias of an entry is its key, not a field of it")
        return {
            alias: {**entry, "alias": alias} if isinstance(entry, dict) else entry for alias, entry in entries.items()
        }


class Models(dict[str, ModelSpec]):
    """Aliases in file order. Asking for an unknown one raises ConfigError naming the nearest."""

    def __missing__(self, alias: str) -> ModelSpec:
        raise ConfigError(unknown_alias(alias, self))


NEAREST = 3
"""Aliases named where one is unknown."""


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


def parse_models(content: Any, where: str = "models") -> Models:
    """`content` (as read from YAML) as specs; `where` names it in errors."""
    try:
        models = Models(ModelsFile.model_validate(content).models)
    except ValidationError as error:
        raise ConfigError(f"{where} is wrong:\n{_describe_problems(error)}") from None
    for spec in models.values():
        _check_pair(spec, models, where)
        if spec.successor is not None and spec.successor not in models:
            raise ConfigError(f"{where}: successor of {spec.alias!r}. " + unknown_alias(spec.successor, models))
    return models


def unknown_alias(alias: str, models: Mapping[str, ModelSpec]) -> str:
    """The sentence for an alias that does not exist, with the nearest ones that do."""
    near = ", ".join(map(repr, difflib.get_close_matches(alias, models, n=NEAREST, cutoff=0)))
    hint = f"Did you mean one of {near}? " if near else ""
    own = "one of your own goes into models.yaml of the artifacts, in the same form."
    return f"Expected a model alias of configs/models.yaml, found {alias!r}. {hint}All are in that file; {own}"


def api_key(spec: ModelSpec, environment: Mapping[str, str] = os.environ) -> str:
    """The key of this model, or `KEYLESS` where none is configured; ModelUnavailable when it is not set or no key."""
    if spec.api_key_env is None:
        return KEYLESS
    if trouble := _check_key(spec, environment):
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
    if trouble := retirement(spec, today) or _check_key(spec, environment):
        return trouble
    if spec.kind.check is None:
        return None
    found: str | None = spec.kind.load(spec.kind.check)(spec)
    return found


def check_reachable(spec: ModelSpec) -> str | None:
    """That nothing listens where the model should be served, or None. Only this machine is knocked at; other
    endpoints show when they are asked."""
    url = urlsplit(spec.base_url or "")
    if url.hostname not in ("localhost", "127.0.0.1", "::1"):
        return None
    try:
        _knock(url.hostname, url.port or {"http": 80, "https": 443}[url.scheme])
    except OSError as error:
        return f"{spec.alias}: nothing answers at {spec.base_url} ({error.strerror or error}); start its server"
    return None


@cache
def _knock(host: str, port: int) -> None:
    """Once a process at each address that answers, however many models are served there. OSError when none does."""
    socket.create_connection((host, port), timeout=KNOCK_SECONDS).close()


def _check_key(spec: ModelSpec, environment: Mapping[str, str]) -> str | None:
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


def _describe_problems(error: ValidationError) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_context=False):
        where = ".".join(str(step) for step in problem["loc"])
        lines.append(f"  {where}: {problem['msg']} (found {problem['input']!r})")
    return "\n".join(lines)
