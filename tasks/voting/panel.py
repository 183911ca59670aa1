"""Who reviews and who votes, and the rule that keeps one model family from agreeing with itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.foundation.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Member:
    alias: str
    family: str

    def __str__(self) -> str:
        return f"{self.alias} ({self.family})"


@dataclass(frozen=True, slots=True)
class Panel:
    """The annotators review and vote; the arbiter, of a family of its own, only votes."""

    annotators: tuple[Member, ...]
    arbiter: Member

    @property
    def voters(self) -> tuple[Member, ...]:
        return (*self.annotators, self.arbiter)

    @property
    def size(self) -> int:
        return len(self.annotators) + 1


def check_families(panel: Panel) -> None:
    """ConfigError unless the annotators are of at least two families and the arbiter of another one."""
    aliases = [member.alias for member in panel.annotators]
    families = {member.family for member in panel.annotators}
    if len(set(aliases)) < len(aliases):
        raise ConfigError(f"voting.annotators: expected different aliases, found {', '.join(aliases)}")
    if panel.arbiter.alias in aliases:
        raise ConfigError(
            f"voting.arbiter: {panel.arbiter} is also an annotator; the arbiter votes and does not review. "
            f"The annotators are {_list_members(panel.annotators)}."
        )
    if len(families) < 2:
        raise ConfigError(
            f"voting.annotators: expected at least two model families, found one: {_list_members(panel.annotators)}. "
            "Models of one family share their mistakes."
        )
    if panel.arbiter.family in families:
        raise ConfigError(
            f"voting.arbiter: {panel.arbiter} is of the same family as an annotator; expected one other than "
            f"{', '.join(sorted(families))}. The annotators are {_list_members(panel.annotators)}."
        )


def _list_members(members: Sequence[Member]) -> str:
    return ", ".join(str(member) for member in members)
