"""The sections of the settings, one for each stage and for what stages share. All are frozen and take nothing extra."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tasks.foundation import locate
from tasks.foundation.tables.languages import language_named
from tasks.foundation.tables.types import Language


class Knob:
    """Marks a setting that cannot change the data, and so is no part of a fingerprint: `Annotated[…, Knob]`. A comment
    beside it says why."""


class HowMany:
    """Marks how many rows a stage is to work on, whatever it reads; a dry run works on fewer."""


class AtMost:
    """Marks how many rows a stage keeps of those it is given; a dry run keeps as many of as many fewer."""


Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]{0,63}$")]
Share = Annotated[float, Field(gt=0, le=1)]
Part = Annotated[float, Field(ge=0, le=1)]
"""A share that may be none."""
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Temperature = Annotated[float, Field(ge=0, le=2)]
IfNone = Annotated[str, Field(pattern=r"^(fail|keep [1-9][0-9]*)$")]
"""What to do where nothing is good enough: stop, or (for trying things out) keep so many all the same."""


def _named(value: object) -> object:
    """A language as the tables have it, however it is written; what names none is left for the check to refuse."""
    return (language_named(value) or value) if isinstance(value, str) else value


InLanguage = Annotated[Language, BeforeValidator(_named)]
"""A language that prompts are written in: `en`, `EN`, `en-US`, `English`; `zh`, `zh-Hans`, `中文`."""


def kept_by(if_none: str) -> int:
    """`"keep 3"` → 3, `"fail"` → 0."""
    return 0 if if_none == "fail" else int(if_none.removeprefix("keep "))


def _path_in_row(path: str) -> str:
    if not path.strip() or path.count("[") != path.count("]") or re.search(r"\[(?!-?\d*\])", path):
        raise ValueError(f"{path!r} is no path: expected one such as profile.age, messages[].content or turns[-1].text")
    return path


def _each_once(entries: list[Any]) -> list[Any]:
    twice = dict.fromkeys(str(entry) for entry in entries if entries.count(entry) > 1)
    if twice:
        raise ValueError(f"expected each once, found {', '.join(twice)} again")
    return entries


EachOnce = AfterValidator(_each_once)
Targets = Annotated[list[str], Field(min_length=1), EachOnce]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Languages = Annotated[list[InLanguage], Field(min_length=1), EachOnce]


class PerLanguage(Section):
    """A number for each language; the benchmark has them 1:1."""

    en: Count = 0
    zh: Count = 0

    def of(self, language: str) -> int:
        return int(getattr(self, language))

    @property
    def total(self) -> int:
        return self.en + self.zh


PathInRow = Annotated[str, AfterValidator(_path_in_row)]
"""Where in a row a value stands (see `sources.paths`)."""


class Source(Section):
    """Where rows come from: a local file, or a dataset of the hub at a pinned revision."""

    path: str | None = None
    hub: str | None = None
    revision: str | None = None
    split: str | None = None
    table: str | None = None
    """Of a database, where it has several; of a workbook its sheet."""
    limit: Positive | None = None
    licence: str = "unknown"
    language: InLanguage | None = None
    """What its rows are taken to be in, unless one says so itself; null: told from what they say."""

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
        return None if self.path is None else locate(self.path)


def _as_written(value: object) -> object:
    """A number of the settings as the text that it is in a source."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


class PersonaSource(Source):
    pool: Slug
    reader: Literal["nemotron", "personamem", "mapped"]
    where: dict[str, list[Annotated[str, BeforeValidator(_as_written)]]] = {}
    """Only rows whose column holds one of these values."""
    mapping: dict[str, PathInRow | Annotated[list[PathInRow], Field(min_length=1)]] = {}
    """For `mapped`: our column → theirs, or the path to it; a description may be of several."""

    @property
    def names_language(self) -> bool:
        """Whether a language is named by the source or its rows; else it is told from the texts."""
        return self.language is not None or "language" in self.mapping

    @property
    def name(self) -> str:
        return self.pool


class InspirationSource(Source):
    """Texts that inspire the characters of a language, one a line or a paragraph: of a text file, or of a column of a
    file of rows or a dataset."""

    language: InLanguage
    column: str | None = None
    """Null: the file is text."""
    one_text_per: Literal["line", "paragraph"] = "line"

    @model_validator(mode="after")
    def _column_of_rows(self) -> Self:
        if self.hub is not None and self.column is None:
            raise ValueError(f"the texts of hub dataset {self.hub!r} are in a column of it: expected `column`")
        return self


ShapeName = Literal["utterances", "sharegpt", "messages", "turns", "dailydialog", "personachat", "samsum", "rows"]
DialoguePart = Literal[
    "dialogue",
    "speakers",
    "speakers_before",
    "narrative",
    "split",
    "language",
    "group_by",
    "order_by",
    "rows",
]


class SceneSource(Source):
    corpus: Slug
    reader: Literal["soda", "lccc", "jsonl", "mapped"] = "mapped"
    shape: ShapeName | None = None
    """For `mapped` (`jsonl` is the same): a common shape by its name; null: recognised from the first rows."""
    mapping: dict[DialoguePart, PathInRow] = {}
    """For `mapped`, where the rows are of no common shape: what we need → the path at which it stands in theirs."""

    @property
    def name(self) -> str:
        return self.corpus

    @model_validator(mode="after")
    def _dialogue_mapped(self) -> Self:
        if self.mapping and "dialogue" not in self.mapping:
            raise ValueError(f"`mapping` must have 'dialogue', found only {', '.join(self.mapping)}")
        if "order_by" in self.mapping and "group_by" not in self.mapping:
            raise ValueError("`order_by` orders the rows of a dialogue: expected `group_by` beside it")
        if "speakers" in self.mapping and "speakers_before" in self.mapping:
            raise ValueError(
                "speakers are at a path (`speakers`) or in front of the text (`speakers_before`), found both"
            )
        given = [name for name in ("mapping", "shape") if getattr(self, name)]
        if len(given) == 2 or (given and self.reader not in ("mapped", "jsonl")):
            other = "both of them" if len(given) == 2 else f"reader {self.reader!r}, which knows its own"
            raise ValueError(f"expected `mapping` or `shape` alone, of the reader 'mapped'; found {other}")
        return self


class RealUsersSource(Source):
    """Messages that people wrote: a column with a conversation (messages with role and content), a list of texts, or a
    text."""

    column: str = "conversation"


class BudgetSection(Section):
    """What a build may spend, over all its runs; null: no limit. Reaching one stops the stage, resumably."""

    max_cost_usd: Annotated[float, Field(gt=0)] | None = None
    max_calls: Positive | None = None
    max_tokens: Positive | None = None
    """Prompt and completion tokens together."""


class RunSection(Section):
    seed: int
    languages: Annotated[Languages, Knob]  # stands in the counts and `languages` of the stages
    benchmark: Annotated[Literal["both", "demo", "eyt"], Knob]  # which stages run, not what they write
    fresh: bool
    budget: Annotated[BudgetSection, Knob]  # when to stop
    concurrent_shards: Annotated[Positive, Knob]  # speed
    rows_in_flight: Annotated[Positive, Knob]  # speed
    lock_wait_seconds: Annotated[float, Field(ge=0), Knob]  # patience


class BatchSection(Section):
    """For stages with `mode: batch`: how jobs are cut, and how often they are asked after."""

    requests_per_job: Annotated[int, Field(ge=1, le=50_000)]
    gather_seconds: Annotated[float, Field(gt=0)]
    poll_seconds: Annotated[float, Field(gt=0)]


class LlmSection(Section):
    max_reasks: Count
    show_output_form: bool
    retry_attempts: Annotated[Positive, Knob]  # patience: an answer is the same after one try or five
    retry_base_seconds: Annotated[float, Field(ge=0), Knob]  # patience
    outage_seconds: Annotated[float, Field(gt=0), Knob]  # patience
    salvage_rounds: Annotated[Count, Knob]  # patience
    replay_only: Annotated[bool, Knob]  # whether a missing reply may be bought, not what it says
    share_limits: Annotated[bool, Knob]  # speed
    batch: Annotated[BatchSection, Knob]  # how the same requests travel


CHARACTERS_A_WORD = {"en": 10, "zh": 4}
"""Room for a word and what stands around it, where a text is to have so many words at most. Two signs of Chinese say a
word, so prompts ask for twice as many."""


class TextLimitsSection(Section):
    """How long texts may be that models write, in characters; those that end in `_words`, in words."""

    name: Positive
    word: Positive
    phrase: Positive
    label: Positive
    goal: Positive
    summary: Positive
    background: Positive
    utterance: Positive
    message: Positive
    reasoning: Positive
    inspiration: Positive
    judge_words: Positive
    remark_words: Positive
    answer_words: Positive
    speech_words: Positive

    def characters(self, name: str, language: Language) -> int:
        """A limit in characters."""
        value: int = getattr(self, name)
        return CHARACTERS_A_WORD[language] * value if self.in_words(name) else value

    @staticmethod
    def in_words(name: str) -> bool:
        """Whether a limit counts words."""
        return name.endswith("_words")


class EncoderSection(Section):
    """What texts of each language are compared with: an encoder of the catalogue by name, or by its folder's path
    (which has a slash in it); `words`: by counts of their words, without weights; null: by their characters."""

    en: str
    zh: str | None
    precision: Literal["float32", "bfloat16"]
    threads: Annotated[Positive, Knob]  # speed

    def of(self, language: str) -> str | None:
        found: str | None = getattr(self, language)
        return found

    @staticmethod
    def folder(encoder: str) -> Path | None:
        """The folder, absolute; None for an encoder of the catalogue."""
        return locate(encoder) if "/" in encoder else None


class StageSection(Section):
    """What every stage has: how its rows are dealt out, when it has failed too often, what it may spend."""

    shard_rows: Annotated[Positive, Knob]  # how rows are dealt out; every row is worked alone
    max_failure_rate: Annotated[float, Field(ge=0, le=1), Knob]  # when to stop, not what to write
    budget: Annotated[BudgetSection, Knob] = BudgetSection()  # when to stop

    def of(self, member: str | None) -> Self:
        """The section as far as it concerns one member of a stage that fans out."""
        return self

    def of_few_rows(self) -> Self:
        """The section for a dry run on some rows of each source: what it demands of all of them is left out."""
        return self


class BatchableSection(StageSection):
    """A stage whose rows are single requests: they may travel through a provider's batch API."""

    mode: Annotated[Literal["live", "batch"], Knob] = "live"  # how the same requests travel


class DedupSection(Section):
    threshold: Share
    encode: Literal["truncate", "windows"]
    jaccard: Share
    search: Literal["exact", "approximate"]


class NearSection(Section):
    """From what likeness on two texts are near-duplicates: by encoder, or by characters where none is used."""

    cosine: Share
    jaccard: Share


class PersonasSection(BatchableSection):
    sources: list[PersonaSource]
    languages: Languages = ["en", "zh"]
    """Rows in others are left out; what `run.languages` says."""
    dedup: DedupSection
    pool_size: Positive
    if_short: Literal["fail", "warn"]
    """What to do where a pool has fewer than `pool_size` personas after deduplication."""
    designer: str
    temperature: Temperature
    max_tokens: Positive
    characters: Annotated[PerLanguage, HowMany]
    inspirations: Annotated[list[InspirationSource], EachOnce]
    character_dedup: NearSection | None

    def of_few_rows(self) -> Self:
        return self.model_copy(update={"if_short": "warn"})


class TurnsBounded(Section):
    """How long dialogues are."""

    min_turns: Annotated[int, Field(ge=2)]
    max_turns: Annotated[int, Field(ge=2)]

    @model_validator(mode="after")
    def _range(self) -> Self:
        if self.min_turns > self.max_turns:
            raise ValueError(f"min_turns ({self.min_turns}) is above max_turns ({self.max_turns})")
        return self


class ScenesSection(TurnsBounded, BatchableSection):
    sources: Annotated[list[SceneSource], EachOnce]
    languages: Languages = ["en", "zh"]
    """As that of `personas`."""
    max_characters: Positive
    near_duplicate: Share
    sample: Annotated[PerLanguage, HowMany]
    goal_dedup: NearSection | None
    one_to_one: bool
    drop_unusable: bool
    distiller: str
    temperature: Temperature
    max_tokens: Positive


PairingRule = Literal["same_name", "same_persona", "child_in_adult_scene"]


class ConflictsSection(BatchableSection):
    pairings: Annotated[PerLanguage, HowMany]
    rules: Annotated[list[PairingRule], EachOnce]
    """What rules a pairing out before it is assessed (configs/pairing_rules.yaml)."""
    assessor: str
    temperature: Temperature
    max_tokens: Positive
    keep_share: Share
    select: Annotated[Positive | None, AtMost]
    if_none: IfNone

    @property
    def keep_if_none(self) -> int:
        """How many of the best-ranked pairings go on where none is coherent; 0: the run stops."""
        return kept_by(self.if_none)

    def selected_of(self, language: Language) -> int:
        """How many of `select` are of a language: half, if both have pairings (English the odd one), else all."""
        if self.select is None or not self.pairings.of(language):
            return 0
        one_only = not (self.pairings.en and self.pairings.zh)
        return self.select if one_only else (self.select + (language == "en")) // 2


class DialoguesSection(TurnsBounded, StageSection):
    writer: str
    style: Literal["whole", "turns"]
    if_unfit: Literal["redraw", "keep"]
    """What becomes of a text that has words in it that no person says (`texts.spoken.UNFIT`)."""
    max_turns: Annotated[int, Field(ge=2, le=60)]
    target_turns: Annotated[float, Field(gt=0)] | None
    """The mean of the lengths that are drawn within the bounds and asked for; null: none is, the bounds are all."""
    temperature: Temperature
    analysis_temperature: Temperature
    max_tokens: Positive
    utterances_per_request: Positive

    @model_validator(mode="after")
    def _target_within(self) -> Self:
        if self.target_turns is not None and not self.min_turns <= self.target_turns <= self.max_turns:
            raise ValueError(
                f"target_turns ({self.target_turns:g}) is the mean of lengths from min_turns ({self.min_turns}) to "
                f"max_turns ({self.max_turns}): expected one of them or between"
            )
        return self


class VotingSection(BatchableSection):
    annotators: Annotated[list[str], Field(min_length=2), EachOnce]
    arbiter: str
    reversed_share: Part
    """Of the disputed labels, which share is voted on a second time, with the candidates in reverse order."""
    temperature: Temperature
    max_tokens: Positive
    utterances_per_request: Positive


class CurationSection(StageSection):
    items_per_task: Annotated[PerLanguage, AtMost]
    episodes: Annotated[PerLanguage, AtMost]
    if_none: IfNone

    @property
    def keep_if_none(self) -> int:
        """How many of the least rejected dialogues stay where the panel takes out all; 0: the run stops."""
        return kept_by(self.if_none)


class ChatseedsSection(BatchableSection):
    per_pool: Annotated[Positive, HowMany]
    language: InLanguage
    seeder: str
    temperature: Temperature
    max_tokens: Positive


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
    """Judges that see only a stratified sample of the conversations, beside those that see all."""

    judges: Targets
    n: Annotated[Positive, AtMost]
    cells: Positive | None = None
    """Of how many of the cells that `by` makes, drawn by `seed`; null: of all."""
    by: Annotated[list[Literal["pool", "target"]], EachOnce]
    seed: int


class JudgingSection(BatchableSection):
    judges: Targets
    temperature: Temperature
    max_tokens: Positive
    prompt_language: InLanguage
    subscore_scale: Literal["half", "binary"]
    split: Literal["none", "dimension"]
    style: Literal["paper", "brief"]
    retest_share: Part
    """Of the judgements, which share is drawn a second time."""
    subsample: SubsampleSection | None

    @property
    def panel(self) -> list[str]:
        """The judges whose scores count together: those that see all conversations; where all see a sample, which is
        the same for all, they."""
        sampling = set(self.subsample.judges) if self.subsample else set()
        return [judge for judge in self.judges if judge not in sampling] or self.judges

    def of(self, member: str | None) -> Self:
        """Without the sample for a judge that sees everything; which other judges see a sample is nothing to any."""
        sample = self.subsample
        if sample is not None:
            mine = member in sample.judges
            sample = sample.model_copy(update={"judges": [member]}) if mine else None
        return self.model_copy(update={"subsample": sample})

    @model_validator(mode="after")
    def _known_judges(self) -> JudgingSection:
        others = sorted(set(self.subsample.judges) - set(self.judges)) if self.subsample else []
        if others:
            raise ValueError(f"subsample.judges names {', '.join(others)}; expected some of {', '.join(self.judges)}")
        return self


Alpha = Annotated[float, Field(gt=0, lt=0.5)]


class PrimaryMetrics(Section):
    """What is tested, named beforehand; all other metrics are descriptive."""

    demo: Annotated[list[str], Field(min_length=1), EachOnce]
    eyt: Annotated[list[str], Field(min_length=1), EachOnce]


class MetricsSection(StageSection):
    primary: PrimaryMetrics
    alpha: Alpha
    alpha_sweep: Annotated[list[Alpha], EachOnce]
    panel_rule: Literal["majority", "mean"]
    resamples: Annotated[int, Field(ge=1, le=100_000)]
    mattr_window: Positive
    real_users: Annotated[list[RealUsersSource], Field(min_length=1), EachOnce] | None
    """Whom simulated users are held against; null: the people of the build's seed dialogues."""
