"""What a plan probably comes to: its requests, each as such requests went in the runs of this store.

A request's calls and tokens are the means over earlier requests of the same stage, purpose and model; of other models
of its kind, where that model was never asked: how long scripted models, or small ones in this process, answer says
nothing of those behind an API. Prices are those of the planned model. How many requests there will be stays as the plan
has it, low to high.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.pricing import pricing_of
from tasks.foundation.llm.providers import LOCAL_PROVIDERS
from tasks.foundation.llm.request import Usage
from tasks.foundation.planning.calls import PlannedCalls
from tasks.foundation.planning.span import Span
from tasks.foundation.store.commits import builds
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import open_views

_QUERY = """
select
    stage,
    purpose,
    alias,
    any_value(provider) as provider,
    count(*) as n,
    avg(attempts) as calls,
    avg(prompt_tokens) as prompt_tokens,
    coalesce(avg(cached_tokens), 0) as cached_tokens,
    avg(completion_tokens) as completion_tokens,
from (
    select distinct on (request_id) *
    from history.llm_calls
    order by request_id, created_at
)
group by stage, purpose, alias
having count(prompt_tokens) > 0 and count(completion_tokens) > 0
"""


@dataclass(frozen=True, slots=True)
class Went:
    """How `n` earlier requests to models of a `kind` went, failed ones included: calls of a request, tokens of one that
    was answered."""

    kind: str
    n: int
    calls: float
    prompt_tokens: float
    cached_tokens: float
    completion_tokens: float

    @staticmethod
    def together(several: Iterable[Went]) -> Went | None:
        """The means over all of them; None for none."""
        every = list(several)
        n = sum(each.n for each in every)
        if not n:
            return None
        names = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens")
        means = (sum(each.n * getattr(each, name) for each in every) / n for name in names)
        return Went(every[0].kind, n, *means)


Earlier = Mapping[tuple[str, str, str], Went]
"""By stage, purpose and alias."""


@dataclass(frozen=True, slots=True)
class Likely:
    """What planned calls probably take. `rests_on`: the earlier requests, by stage, purpose and alias; `dollars` None:
    no known price."""

    calls: Span
    prompt_tokens: Span
    completion_tokens: Span
    dollars: Span | None
    rests_on: frozenset[tuple[str, str, str]]


def earlier_requests(layout: Layout) -> Earlier:
    """How the requests of all builds went; every request once, however often it was replayed."""
    if not builds(layout):
        return {}
    with open_views(layout) as connection:
        rows = connection.execute(_QUERY).fetchall()
    return {(stage, purpose, alias): Went(_kind(provider), *means) for stage, purpose, alias, provider, *means in rows}


def _kind(provider: str) -> str:
    return provider if provider in LOCAL_PROVIDERS else "api"


def likely(stage: str, planned: PlannedCalls, earlier: Earlier, spec: ModelSpec, *, batched: bool) -> Likely | None:
    """None where no model of its kind was ever asked this."""
    kind = _kind(spec.provider)
    asked = {key for key, went in earlier.items() if key[:2] == (stage, planned.purpose) and went.kind == kind}
    own = {key for key in asked if key[2] == planned.alias}
    went = Went.together(earlier[key] for key in own or asked)
    if went is None:
        return None
    usage = Usage(round(went.prompt_tokens), round(went.cached_tokens), round(went.completion_tokens))
    price = pricing_of(spec, batched=batched)(usage)
    return Likely(
        planned.requests * went.calls,
        planned.requests * went.prompt_tokens,
        planned.requests * went.completion_tokens,
        None if price is None else planned.requests * price,
        frozenset(own or asked),
    )
