"""Every setting, checked before anything runs.

One frozen section per stage. Order of precedence: `--set` and flow parameters, then
`COLLOQUY_*` environment variables, then the profile, then configs/base.yaml. A name that no section
declares is an error wherever it comes from. Secrets are not settings: model aliases name the
environment variable that holds a key, and only the provider reads it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.sources import InitSettingsSource

from tasks.foundation.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
"""The checkout; relative paths in settings start here."""

CONFIGS = ROOT / "configs"

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

KNOBS = (
    # Settings that cannot change the data, left out of every fingerprint. Each line says why.
    "shard_rows",  # how rows are dealt out; every row is worked alone
    "max_failure_rate",  # when to stop, not what to write
    "concurrent_shards",  # speed
    "rows_in_flight",  # speed
    "search",  # two ways to the same pairs, of which the same are decided on
    "lock_wait_seconds",  # patience
    "retry_attempts",  # patience: an answer is the same after one try or five
    "retry_base_seconds",  # patience
    "outage_seconds",  # patience
    "salvage_rounds",  # patience
    "replay_only",  # whether a missing reply may be bought, not what it says
    "share_limits",  # speed
    "batch",  # how the same requests travel
    "mode",  # how the same requests travel
    "budget",  # when to stop
)


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Share = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Temperature = Annotated[float, Field(ge=0, le=2)]
IfNone = Annotated[str, Field(pattern=r"^(fail|keep [1-9][0-9]*)$")]
"""What to do where nothing is good enough: stop, or (for trying things out) keep so many all the same."""


def kept_by(if_none: str) -> int:
    """`"keep 3"` → 3, `"fail"` → 0."""
    return 0 if if_none == "fail" else int(if_none.removeprefix("keep "))


class PerLanguage(Section):
    """A number for each language; the benchmark has them 1:1."""

    en: Count = 0
    zh: Count = 0

    def of(self, language: str) -> int:
        return int(getattr(self, language))

    @property
    def total(self) -> int:
        return self.en + self.zh


class Source(Section):
    """Where rows come from: a local file, or a dataset of the hub at a pinned revision."""

    path: str | None = None
    hub: str | None = None
    revision: str | None = None
    split: str | None = None
    limit: Positive | None = None
    licence: str = "unknown"

    @model_validator(mode="after")
    def _one_place(self) -> Source:
        if (self.path is None) == (self.hub is None):
            raise ValueError(
                "a source has either `path` (a local file) or `hub` (a dataset), found "
                f"path={self.path!r}, hub={self.hub!r}"
            )
        if self.hub is not None and self.revision is None:
            raise ValueError(f"hub dataset {self.hub!r} needs a pinned `revision`: a rebuild must read the same rows")
        return self

    @property
    def name(self) -> str:
        """What its rows are called after; without a name of its own, where they come from."""
        return self.hub or str(self.path)

    @property
    def file(self) -> Path | None:
        """The local file, absolute; None for a hub dataset."""
        return None if self.path is None else ROOT / self.path


class PersonaSource(Source):
    pool: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]{0,63}$")]
    reader: Literal["nemotron", "personamem", "mapped"]
    where: dict[str, list[str]] = {}
    """Only rows whose column holds one of these values."""
    mapping: dict[str, str] = {}
    """For `mapped`: our column → theirs."""

    @property
    def name(self) -> str:
        return self.pool


class InspirationSource(Section):
    """A local file of texts that inspire the characters of its language, one text a line or a paragraph."""

    path: str
    language: Literal["en", "zh"]
    one_text_per: Literal["line", "paragraph"] = "line"
    licence: str = "unknown"

    @property
    def file(self) -> Path:
        """The file, absolute."""
        return ROOT / self.path


class SceneSource(Source):
    corpus: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]{0,63}$")]
    reader: Literal["soda", "lccc", "jsonl"]

    @property
    def name(self) -> str:
        return self.corpus


class BudgetSection(Section):
    """What a build may spend, over all its runs; null: no limit. Reaching one stops the stage, resumably."""

    max_cost_usd: Annotated[float, Field(gt=0)] | None = None
    max_calls: Positive | None = None
    max_tokens: Positive | None = None
    """Prompt and completion tokens together."""


class RunSection(Section):
    seed: int
    fresh: bool
    budget: BudgetSection
    concurrent_shards: Positive
    rows_in_flight: Positive
    lock_wait_seconds: Annotated[float, Field(ge=0)]


class BatchSection(Section):
    """For stages with `mode: batch`: how jobs are cut, and how often they are asked after."""

    requests_per_job: Annotated[int, Field(ge=1, le=50_000)]
    gather_seconds: Annotated[float, Field(gt=0)]
    poll_seconds: Annotated[float, Field(gt=0)]


class LlmSection(Section):
    max_reasks: Count
    retry_attempts: Positive
    retry_base_seconds: Annotated[float, Field(ge=0)]
    outage_seconds: Annotated[float, Field(gt=0)]
    salvage_rounds: Count
    replay_only: bool
    share_limits: bool
    batch: BatchSection


class EncoderSection(Section):
    """What texts of each language are compared with: an encoder of the catalogue by name, or by its folder's path
    (which has a slash in it); null: by their characters."""

    en: str
    zh: str | None
    precision: Literal["float32", "bfloat16"]
    threads: Positive

    def of(self, language: str) -> str | None:
        found: str | None = getattr(self, language)
        return found

    @staticmethod
    def folder(encoder: str) -> Path | None:
        """The folder, absolute; None for an encoder of the catalogue."""
        return ROOT / encoder if "/" in encoder else None


class StageSection(Section):
    """What every stage has: how its rows are dealt out, when it has failed too often, what it may spend."""

    shard_rows: Positive
    max_failure_rate: Annotated[float, Field(ge=0, le=1)]
    budget: BudgetSection = BudgetSection()


class BatchableSection(StageSection):
    """A stage whose rows are single requests: they may travel through a provider's batch API."""

    mode: Literal["live", "batch"] = "live"


class DedupSection(Section):
    threshold: Share
    encode: Literal["truncate", "windows"]
    jaccard: Share
    search: Literal["exact", "faiss"]


class NearSection(Section):
    """From what likeness on two texts are near-duplicates: by encoder, or by characters where none is used."""

    cosine: Share
    jaccard: Share


class PersonasSection(BatchableSection):
    sources: list[PersonaSource]
    dedup: DedupSection
    pool_size: Positive
    designer: str
    temperature: Temperature
    max_tokens: Positive
    characters: PerLanguage
    inspirations: list[InspirationSource]
    character_dedup: NearSection | None


class ScenesSection(BatchableSection):
    sources: list[SceneSource]
    min_turns: Positive
    max_turns: Positive
    max_characters: Positive
    near_duplicate: Share
    sample: PerLanguage
    goal_dedup: NearSection | None
    one_to_one: bool
    distiller: str
    temperature: Temperature
    max_tokens: Positive


class ConflictsSection(BatchableSection):
    pairings: PerLanguage
    assessor: str
    temperature: Temperature
    max_tokens: Positive
    keep_share: Share
    select: Positive | None
    if_none: IfNone

    @property
    def keep_if_none(self) -> int:
        """How many of the best-ranked pairings go on where none is coherent; 0: the run stops."""
        return kept_by(self.if_none)


class DialoguesSection(StageSection):
    writer: str
    min_turns: Annotated[int, Field(ge=2)]
    max_turns: Annotated[int, Field(ge=2, le=60)]
    temperature: Temperature
    analysis_temperature: Temperature
    max_tokens: Positive
    utterances_per_request: Positive

    @model_validator(mode="after")
    def _range(self) -> DialoguesSection:
        if self.min_turns > self.max_turns:
            raise ValueError(f"min_turns ({self.min_turns}) is above max_turns ({self.max_turns})")
        return self


class VotingSection(BatchableSection):
    annotators: Annotated[list[str], Field(min_length=2)]
    arbiter: str
    temperature: Temperature
    max_tokens: Positive
    utterances_per_request: Positive


class CurationSection(StageSection):
    items_per_task: PerLanguage
    episodes: PerLanguage
    if_none: IfNone

    @property
    def keep_if_none(self) -> int:
        """How many of the least rejected dialogues stay where the panel takes out all; 0: the run stops."""
        return kept_by(self.if_none)


class ChatseedsSection(BatchableSection):
    per_pool: Positive
    language: Literal["en", "zh"]
    seeder: str
    temperature: Temperature
    max_tokens: Positive


Targets = Annotated[list[str], Field(min_length=1)]


class AwarenessSection(BatchableSection):
    targets: Targets
    samples: Positive
    temperature: Temperature
    max_tokens: Positive


class InteractionSection(StageSection):
    targets: Targets
    partner: str | None
    samples: Positive
    max_turns: Annotated[int, Field(ge=2)]
    temperature: Temperature
    max_tokens: Positive


class ConversationSection(StageSection):
    targets: Targets
    simulator: str
    samples: Positive
    max_turns: Positive
    persona_to_target: Literal["none", "perception", "both"]
    simulator_temperature: Temperature
    perception_temperature: Temperature
    temperature: Temperature
    max_tokens: Positive
    label_reasks: Count
    family_waiver: Annotated[str, Field(min_length=10)] | None


class SubsampleSection(Section):
    n: Positive
    by: list[Literal["pool", "target"]]
    seed: int


class JudgingSection(BatchableSection):
    judges: Annotated[list[str], Field(min_length=1)]
    temperature: Temperature
    max_tokens: Positive
    prompt_language: Literal["en", "zh"]
    subscore_scale: Literal["half", "binary"]
    split: Literal["none", "dimension"]
    subsample: SubsampleSection | None


Alpha = Annotated[float, Field(gt=0, lt=0.5)]


class MetricsSection(StageSection):
    alpha: Alpha
    alpha_sweep: list[Alpha]
    panel_rule: Literal["majority", "mean"]
    resamples: Positive
    mattr_window: Positive


class Settings(BaseSettings):
    """All sections. Made by `load_settings`; frozen, nothing extra."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=ENVIRONMENT_PREFIX, env_nested_delimiter="__"
    )

    run: RunSection
    llm: LlmSection
    encoder: EncoderSection
    personas: PersonasSection
    scenes: ScenesSection
    conflicts: ConflictsSection
    dialogues: DialoguesSection
    voting: VotingSection
    curation: CurationSection
    chatseeds: ChatseedsSection
    awareness: AwarenessSection
    interaction: InteractionSection
    conversation: ConversationSection
    judging: JudgingSection
    metrics: MetricsSection

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
            InitSettingsSource(settings_cls, layers["base"]),
        )


def load_settings(profile: str | None = None, overrides: Sequence[str] = ()) -> Settings:
    """Settings of a profile with `section.key=value` overrides (values are YAML).

    Raises ConfigError for an unknown profile, name or value, saying where it came from.
    """
    profile = profile or os.environ.get("COLLOQUY_PROFILE") or "demo"
    layers = {
        "overrides": parse_overrides(overrides),
        "profile": _read_layer(profile_file(profile)),
        "base": _read_layer(CONFIGS / "base.yaml"),
    }
    _refuse_unknown_environment(os.environ)
    try:
        return Settings(**layers)  # type: ignore[arg-type]
    except ValidationError as error:
        raise ConfigError(_explain(error, profile)) from None


def profile_names() -> list[str]:
    return sorted(path.stem for path in (CONFIGS / "profiles").glob("*.yaml"))


def profile_file(profile: str) -> Path:
    """The profile's file; ConfigError for a name that has none."""
    path = CONFIGS / "profiles" / f"{profile}.yaml"
    if profile not in profile_names():
        raise ConfigError(
            f"profile {profile!r} does not exist; expected one of {', '.join(profile_names())}"
            f"{_did_you_mean(profile, profile_names())}. Profiles are files in {CONFIGS / 'profiles'}."
        )
    return path


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """`["voting.arbiter=x"]` → `{"voting": {"arbiter": "x"}}`; ConfigError for another shape."""
    nested: dict[str, Any] = {}
    for override in overrides:
        name, equals, value = override.partition("=")
        parts = name.strip().split(".")
        if not equals or not all(parts):
            raise ConfigError(f"expected section.key=value, found {override!r}")
        level = nested
        for part in parts[:-1]:
            level = level.setdefault(part, {})
            if not isinstance(level, dict):
                raise ConfigError(f"{override!r} sets a part of what another --set gives as a whole")
        try:
            level[parts[-1]] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ConfigError(f"the value of {override!r} is not YAML: {error}") from None
    return nested


def _read_layer(path: Path) -> dict[str, Any]:
    try:
        layer = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    if not isinstance(layer, dict):
        raise ConfigError(f"{path}: expected sections with settings, found {type(layer).__name__}")
    layer.pop("description", None)
    return layer


def _refuse_unknown_environment(environment: Mapping[str, str]) -> None:
    known = {f"{ENVIRONMENT_PREFIX}{name}".upper() for name in _dotted_names("__")}
    for name in environment:
        if not name.startswith(ENVIRONMENT_PREFIX) or name.startswith(BENCHMARKS_PREFIX):
            continue
        if name not in known and name not in OTHER_ENVIRONMENT:
            raise ConfigError(
                f"environment variable {name} is no setting{_did_you_mean(name, [*known, *OTHER_ENVIRONMENT])}. "
                f"Settings are {ENVIRONMENT_PREFIX}<SECTION>__<KEY>, for example COLLOQUY_RUN__SEED."
            )


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


def without_knobs(value: Any) -> Any:
    """A settings section as plain data, less the names in `KNOBS`: what a fingerprint hashes."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    if isinstance(value, dict):
        return {name: without_knobs(inner) for name, inner in value.items() if name not in KNOBS}
    if isinstance(value, list):
        return [without_knobs(inner) for inner in value]
    return value
