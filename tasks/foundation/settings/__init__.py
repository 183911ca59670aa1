"""Every setting, checked before anything runs.

One frozen section per stage. Order of precedence: `--set` and flow parameters, then
`COLLOQUY_*` environment variables, then the profile, then configs/base.yaml. A name that no section
declares is an error wherever it comes from. Secrets are not settings: model aliases name the
environment variable that holds a key, and only the provider reads it.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError, model_validator
from pydantic_core import to_jsonable_python
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.sources import InitSettingsSource

from tasks.foundation import CONFIGS
from tasks.foundation.errors import ConfigError
from tasks.foundation.settings import sections
from tasks.foundation.settings.sections import Knob
from tasks.foundation.settings.strict_yaml import GivenTwice, build_object, load_yaml
from tasks.foundation.tables.languages import LANGUAGES, language_named

ENVIRONMENT_PREFIX = "COLLOQUY_"
OTHER_ENVIRONMENT = (
    "COLLOQUY_ARTIFACTS",
    "COLLOQUY_MODELS_DIR",
    "COLLOQUY_MODEL_FILES",
    "COLLOQUY_PROFILE",
    "COLLOQUY_SCRIPTED_LATENCY",
    "COLLOQUY_REAL_ROWS",
)
"""Names that are ours but no setting: where things lie, and what tests use."""
BENCHMARKS_PREFIX = "COLLOQUY_BENCH_"
"""Names that the benchmarks use."""


class Settings(BaseSettings):
    """All sections. Made by `load_settings`; frozen, nothing extra."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=ENVIRONMENT_PREFIX, env_nested_delimiter="__"
    )

    run: sections.RunSection
    llm: sections.LlmSection
    text_limits: sections.TextLimitsSection
    encoder: sections.EncoderSection
    personas: sections.PersonasSection
    scenes: sections.ScenesSection
    conflicts: sections.ConflictsSection
    dialogues: sections.DialoguesSection
    voting: sections.VotingSection
    curation: sections.CurationSection
    chatseeds: sections.ChatseedsSection
    awareness: sections.AwarenessSection
    interaction: sections.InteractionSection
    conversation: sections.ConversationSection
    judging: sections.JudgingSection
    metrics: sections.MetricsSection

    @model_validator(mode="before")
    @classmethod
    def _in_languages(cls, content: Any) -> Any:
        """With `run.languages`, the stages work on rows in these, and on none in others, whatever their counts say."""
        asked = content.get("run", {}).get("languages") if isinstance(content, dict) else None
        wanted = [language_named(each) for each in asked] if isinstance(asked, list) else []
        if not wanted or None in wanted:
            return content  # the section says what is wrong with it
        unwanted = dict.fromkeys((each for each in LANGUAGES if each not in wanted), 0)
        for name, info in cls.model_fields.items():
            section, given = info.annotation, content.get(name)
            if not (isinstance(section, type) and issubclass(section, BaseModel) and isinstance(given, dict)):
                continue
            if "languages" in section.model_fields and name != "run":
                given["languages"] = wanted
            for field, declared in section.model_fields.items():
                if declared.annotation is sections.PerLanguage and isinstance(given.get(field), dict):
                    given[field] = {**given[field], **unwanted}
        return content

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        layers = init_settings.init_kwargs  # type: ignore[attr-defined]
        return (
            InitSettingsSource(settings_cls, layers["overrides"]),
            env_settings,
            InitSettingsSource(settings_cls, layers["profile"]),
            InitSettingsSource(settings_cls, layers["like"]),
            InitSettingsSource(settings_cls, layers["base"]),
        )


def load_settings(profile: str | None = None, overrides: Sequence[str] = ()) -> Settings:
    """Settings of a profile with `section.key=value` overrides (values are YAML).

    Raises ConfigError for an unknown profile, name or value, saying where it came from.
    """
    profile = profile or os.environ.get("COLLOQUY_PROFILE") or "demo"
    own, like = _read_profile(profile)
    layers = {
        "overrides": parse_overrides(overrides),
        "profile": own,
        "like": _read_profile(like)[0] if like else {},
        "base": _read_layer(CONFIGS / "base.yaml"),
    }
    _check_environment(os.environ)
    try:
        return Settings(**layers)  # type: ignore[arg-type]
    except ValidationError as error:
        raise ConfigError(_explain(error, profile)) from None


def profile_names() -> list[str]:
    return sorted(path.stem for path in (CONFIGS / "profiles").glob("*.yaml"))


def profile_file(profile: str) -> Path:
    """The profile's file: a name is one of configs/profiles, what ends in `.yaml` is a path; ConfigError for none."""
    if profile.endswith(".yaml"):
        path = Path(profile_from_anywhere(profile))
        if not _is_file(path):
            raise ConfigError(f"profile {profile}: there is no such file; looked for {path}")
        return path
    if profile not in profile_names():
        raise ConfigError(
            f"profile {profile!r} does not exist; expected one of {', '.join(profile_names())}"
            f"{_did_you_mean(profile, profile_names())}, or the path of a file of your own that ends in .yaml. "
            f"Profiles are files in {CONFIGS / 'profiles'}."
        )
    return CONFIGS / "profiles" / f"{profile}.yaml"


def profile_from_anywhere(profile: str) -> str:
    """The profile as it is found from whatever folder is the current one: the path of a file becomes absolute."""
    if not profile.endswith(".yaml"):
        return profile
    try:
        return str(Path(profile).expanduser().absolute())
    except RuntimeError:  # of a user whose home is not known
        return str(Path(profile).absolute())


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """`["voting.arbiter=x"]` → `{"voting": {"arbiter": "x"}}`; ConfigError for another shape. Of several for one
    setting the last one holds."""
    nested: dict[str, Any] = {}
    for override in overrides:
        name, equals, value = override.partition("=")
        parts = name.strip().split(".")
        if not equals or not all(parts):
            raise ConfigError(f"expected section.key=value, found {override!r}")
        if parts[:2] != [part.lower() for part in parts[:2]]:
            raise ConfigError(f"settings are written in small letters, found {override!r}")
        level = nested
        for part in parts[:-1]:
            level = level.setdefault(part, {})
            if not isinstance(level, dict):
                raise ConfigError(f"{override!r} sets a part of what another --set gives as a whole")
        try:
            level[parts[-1]] = load_yaml(value)
        except yaml.YAMLError as error:
            raise ConfigError(f"the value of {override!r} is not YAML: {error}") from None
    return nested


def refuse_twice(overrides: Iterable[str]) -> None:
    """ConfigError where one override would take another one's place. A whole may come before its parts."""
    given: dict[str, tuple[str, str]] = {}
    for override in overrides:
        name, _, value = map(str.strip, override.partition("="))
        for other, (earlier, before) in given.items():
            if (other == name and before != value) or other.startswith(f"{name}."):
                raise ConfigError(f"setting {other} is given twice, by {earlier!r} and {override!r}: leave one out")
        given[name] = (override, value)


def _read_profile(profile: str) -> tuple[dict[str, Any], str | None]:
    """What a profile sets, and the one that it says it is `like` but for that. ConfigError for one that is itself like
    another."""
    layer = _read_layer(profile_file(profile))
    like = layer.pop("like", None)
    if like is not None and (like not in profile_names() or "like" in _read_layer(profile_file(like))):
        raise ConfigError(
            f"profile {profile}: expected `like` to name one of configs/profiles that is like no other, found {like!r}"
        )
    return layer, like


def _read_layer(path: Path) -> dict[str, Any]:
    try:
        layer = load_yaml(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    if not isinstance(layer, dict):
        raise ConfigError(f"{path}: expected sections with settings, found {type(layer).__name__}")
    if odd := [name for name in _names_in(layer) if not isinstance(name, str)]:
        raise ConfigError(f"{path}: expected names of settings, found {odd[0]!r}")
    layer.pop("description", None)
    return layer


def _names_in(value: Any) -> Iterator[Any]:
    """The names in a layer, at all levels."""
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    yield from value if isinstance(value, dict) else ()
    for each in inner:
        yield from _names_in(each)


def _check_environment(environment: Mapping[str, str]) -> None:
    """ConfigError for a variable that is no setting, and for a setting that two variables give."""
    known = {f"{ENVIRONMENT_PREFIX}{name}".upper() for name in _dotted_names("__")}
    given: dict[str, str] = {}
    for name, value in environment.items():
        plain = name.upper()  # pydantic reads names in any case
        if not plain.startswith(ENVIRONMENT_PREFIX) or plain.startswith(BENCHMARKS_PREFIX):
            continue
        if plain in known:
            _refuse_given_by_two(name, value, given)
        elif plain not in OTHER_ENVIRONMENT:
            raise ConfigError(
                f"environment variable {name} is no setting{_did_you_mean(name, [*known, *OTHER_ENVIRONMENT])}. "
                f"Settings are {ENVIRONMENT_PREFIX}<SECTION>__<KEY>, for example COLLOQUY_RUN__SEED."
            )


def _refuse_given_by_two(variable: str, value: str, given: dict[str, str]) -> None:
    """ConfigError naming both variables of a setting; `given` has the settings before it with their variables."""
    path = variable.upper().removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
    try:
        inner = json.loads(value, object_pairs_hook=build_object)
    except GivenTwice as error:
        raise ConfigError(f"environment variable {variable}: {error}") from None
    except ValueError:
        inner = value
    for name in _leaves(".".join(path), inner):
        other = given.setdefault(name, variable)
        if other != variable:
            raise ConfigError(
                f"setting {name} is given twice, by the environment variables {other} and {variable}: unset one"
            )


def _leaves(name: str, value: Any) -> list[str]:
    """The settings that a value gives: itself, or, of an object, those within it."""
    if not isinstance(value, dict):
        return [name]
    return [leaf for key, inner in value.items() for leaf in _leaves(f"{name}.{key}", inner)]


def _dotted_names(separator: str = ".", model: type[BaseModel] = Settings) -> list[str]:
    names = []
    for name, field in model.model_fields.items():
        names.append(name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            names += [f"{name}{separator}{inner}" for inner in _dotted_names(separator, field.annotation)]
    return names


def _explain(error: ValidationError, profile: str) -> str:
    """All problems of a settings object, one line each, with near names for misspelt ones."""
    lines = []
    for problem in error.errors():
        where = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            lines.append(f"setting {where!r} does not exist{_did_you_mean(where, _dotted_names())}")
        elif problem["type"] == "missing":
            lines.append(f"setting {where!r} has no value")
        else:
            lines.append(f"setting {where!r}: {problem['msg']}, found {problem['input']!r}")
    return f"profile {profile!r} with its overrides is not valid:\n  " + "\n  ".join(lines)


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""


def without_knobs(section: BaseModel) -> dict[str, Any]:
    """A settings section as plain data, less the fields that are marked as a `Knob`: what a fingerprint hashes."""
    fields = type(section).model_fields.items()
    return {name: _plain(getattr(section, name)) for name, field in fields if Knob not in field.metadata}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return without_knobs(value)
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return to_jsonable_python(value)
