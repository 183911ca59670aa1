"""The errors a user can meet. Each says what was expected, what was found, where, and what to do.

`str(error)` is the whole message: the command line prints it without a traceback and exits with
`error.exit_code`. Anything that is not a `ColloquyError` is a bug and keeps its traceback.
"""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

FailureKind = Literal[
    "rate_limited",
    "timeout",
    "connection",
    "server",
    "refused",
    "content_filter",
    "context_overflow",
    "truncated",
    "unreadable",
    "invalid",
    "budget",
]
"""Why one model request failed (the engine's closed list; `rejects.kind` and `llm_calls.error_kind`)."""

FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)

PASSING_KINDS: tuple[FailureKind, ...] = ("rate_limited", "timeout", "connection", "server", "budget")
"""Failures that may pass later: the row is redone by the next run, and its commit is partial."""


class ColloquyError(Exception):
    """Base of every error that is the user's to mend rather than ours."""

    exit_code: ClassVar[int] = 1


class ConfigError(ColloquyError):
    """A setting, profile, model alias, taxonomy or command-line value is wrong."""

    exit_code = 2


class PromptError(ConfigError):
    """A prompt file and the code that binds it disagree."""


class SourceError(ColloquyError):
    """An input file cannot be used as a whole (one bad row becomes a reject instead)."""

    exit_code = 3


class TableError(ColloquyError):
    """Rows do not fit the table that is declared for them, or a stored table is damaged."""

    exit_code = 3


class NothingLeft(ColloquyError):
    """What a stage found in its input leaves it nothing to go on with."""

    exit_code = 3


class StoreError(ColloquyError):
    """The store cannot be written or a build is not in the state that was asked for."""

    exit_code = 4


class BuildBusy(StoreError):
    """Another live process runs this stage of this build; the message names it."""

    exit_code = 6


class ModelError(ColloquyError):
    """One model request failed after all its attempts.

    `kind` is from the closed list above; `attempts` counts calls that reached the provider. `text` is the
    last reply as it came, where one came at all (None: none did).
    """

    exit_code = 5

    def __init__(self, kind: FailureKind, message: str, *, attempts: int = 1, text: str | None = None) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.attempts = attempts
        self.text = text

    @property
    def may_pass_later(self) -> bool:
        """Whether the same request could succeed on another day."""
        return self.kind in PASSING_KINDS


class ModelUnavailable(ColloquyError):
    """No request to this model can succeed: no weights, no key, a key refused, an unknown model name.

    Stops the run at once (resumably) instead of failing every row the same way.
    """

    exit_code = 5


class TooManyFailures(ColloquyError):
    """A stage passed its `max_failure_rate`; what was done is kept, the same command goes on."""

    exit_code = 5


class BudgetReached(ColloquyError):
    """A budget of the settings is used up; what was answered is kept, a larger budget goes on."""

    exit_code = 9
