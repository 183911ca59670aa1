"""A stage's own `work` without its models: requests are counted, and answered with texts of the usual length.

What is asked for some rows is taken for all of them:

    plan_items(stage, context, {"": (keys, 1.0)}, models, history, most_requests=240).calls
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import random
from collections import Counter, defaultdict
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from tasks.foundation.errors import ColloquyError, ModelError
from tasks.foundation.ids import canonical_json, seed_of, seeded_order
from tasks.foundation.llm.chain import QUOTED_CHARACTERS, first_call
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.pricing import pricing_of
from tasks.foundation.llm.providers import LOCAL_PROVIDERS
from tasks.foundation.llm.providers.scripted import from_schema, make_reply
from tasks.foundation.llm.request import ProviderCall, Request, Usage
from tasks.foundation.llm.schema_filler import SchemaFiller
from tasks.foundation.run.batching import in_batches
from tasks.foundation.run.cost_plan import Expected, PlannedCalls
from tasks.foundation.run.usual_usage import (
    UsageHistory,
    UsualUsage,
    count_prompt_tokens,
    count_tokens,
    count_wide,
    usual_table,
)
from tasks.foundation.settings import Settings
from tasks.foundation.stage import Asker, Stage, StageContext
from tasks.foundation.store.layout import Layout
from tasks.foundation.tables import Row

log = logging.getLogger(__name__)

FEWEST_ROWS = 8
"""So many rows are worked on before a stage is stopped by the number of its requests."""
MOST_REQUESTS_OF_A_RUN = 60
"""That are tried as a run begins, which nobody should wait for."""
MOST_ORDERED = 10_000
"""Keys that are put in order; of more, every so manieth: ordering a million takes seconds."""
AT_ONCE = 8
"""Rows whose inputs are read together."""
SPREAD_OF_ROUNDS = 1.25
"""By which factor the number of items may be off that rounds are drawn on for."""
COUNTED_CLOSELY = 1.03
"""The spread of a number of calls that follows from rows that are there: only what is asked again is not known."""
CALLED_BY_NAME = f"{from_schema.__module__}:{from_schema.__qualname__}"
"""A scripted model that costs nothing to ask, so it is asked."""

_CHINESE = (
    "我你他们这那有在是不了很会想去来看说做家里今天明年朋友时候工作孩子老师城市河边晚上早起喜欢觉得可以因"
    "为所以但如果还没已经一起问题办法心情照片音乐书店花园"
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request: tokens of its first call."""

    alias: str
    purpose: str
    prompt_tokens: float
    completion_tokens: float
    max_tokens: int
    usual: UsualUsage


@dataclass(slots=True)
class WorkedDry:
    """What some rows ask and make. `n_items`: of how many, expected in all."""

    n_items: float = 0
    n_worked: int = 0
    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    calls: list[PlannedCalls] = field(default_factory=list)

    @property
    def weight(self) -> float:
        """How many items each one stands for that was worked on."""
        return self.n_items / self.n_worked if self.n_worked else 1.0


Groups = Mapping[str, tuple[Sequence[str], float]]
"""Items by what they come from: their keys, and how many items each of these stands for."""


def plan_items(
    stage: Stage,
    context: StageContext,
    groups: Groups,
    models: Mapping[str, ModelSpec],
    history: UsageHistory,
    *,
    most_requests: int,
    spread: float = 1.0,
    settings: Settings | None = None,
) -> WorkedDry:
    """What the items of a stage, and those of the rounds that it draws on, are expected to ask, from some of each
    group; `spread`: how far their number may be off; `settings`: the whole ones, where the context has smaller ones."""
    done = WorkedDry()
    for keys, weight in groups.values():
        asked: list[_Asked] = []
        most = most_requests // max(len(groups), 1)
        n = _run(_work_on(stage, context, keys, models, history, most, asked, done.rows))
        times = _expect_rounds(stage, asked, weight * len(keys), settings or context.settings)
        done.n_items += weight * len(keys) * times
        done.n_worked += n
        if n:
            share = weight * len(keys) * times / n
            further = spread if times == 1 else max(spread, SPREAD_OF_ROUNDS)
            done.calls += _plan_calls(asked, share, context.settings, models, stage.name, further)
    return done


def _expect_rounds(stage: Stage, asked: Sequence[_Asked], n_items: float, settings: Settings) -> float:
    """How many times as many items as in the first round a stage usually has in all: so many that the usual share of
    them makes up the first."""
    if stage.draw_on is None or not n_items:
        return 1.0
    chances = (one.usual.chances[stage.draw_on.until] for one in asked if stage.draw_on.until in one.usual.chances)
    return max(1.0, min(1 / max(next(chances, 1.0), 0.01), stage.draw_on.most(settings) / n_items))


def plan_run(
    stage: Stage, context: StageContext, keys: Sequence[str], models: Mapping[str, ModelSpec], layout: Layout
) -> list[PlannedCalls]:
    """What the items of a prepared run's first round, and the rounds after it, are expected to ask: kept in its commit,
    beside what they took. No run ends because it cannot be planned."""
    if stage.work is None or not keys:
        return []
    most = MOST_REQUESTS_OF_A_RUN
    try:
        history = UsageHistory.of(layout, [stage.name])
        return plan_items(stage, context, {"": (keys, 1.0)}, models, history, most_requests=most).calls
    except ColloquyError as error:
        log.warning("stage %s is not planned: %s", stage.name, error)
        return []


def _run(work: Coroutine[Any, Any, int]) -> int:
    """Runs to the end in a loop and thread of its own: who plans may be in a loop already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _work_on(
    stage: Stage,
    context: StageContext,
    keys: Sequence[str],
    models: Mapping[str, ModelSpec],
    history: UsageHistory,
    most_requests: int,
    asked: list[_Asked],
    rows: dict[str, list[Row]],
) -> int:
    """Works on keys in a seeded order until enough was asked; how many they were."""
    if stage.work is None or stage.load_items is None:
        return 0
    until = stage.draw_on.until if stage.draw_on else None
    some_keys = keys[:: 1 + len(keys) // MOST_ORDERED]
    order = [some_keys[place] for place in seeded_order(some_keys, context.settings.run.seed, "dry run")]
    for first in range(0, len(order), AT_ONCE):
        some = order[first : first + AT_ONCE]
        loaded = stage.load_items(context, some)
        for number, key in enumerate(some):
            asker = DryAsker(stage.name, key, context.settings, models, history, asked, until)
            try:
                made = await stage.work(context, loaded[key], asker)
            except Exception:  # noqa: BLE001 - on made-up replies; what is wrong with a real one, the run itself says
                made = {}
            for table, each in made.items():
                rows[table].extend(each)
            if len(asked) >= most_requests and first + number + 1 >= FEWEST_ROWS:
                return first + number + 1
    return len(order)


def _prompt_tokens(call: ProviderCall, usual: UsualUsage, text: str) -> float:
    """Tokens of the call's prompt. An endpoint that takes the schema apart counts it as well; what was reported before
    has it in its share."""
    family = call.model.family
    if is_asked(call.model):
        return float(make_reply(text, call).usage.prompt_tokens or 0)
    tokens = count_prompt_tokens(call.messages, family)
    if usual.basis == "table" and call.schema is not None and call.model.provider not in LOCAL_PROVIDERS:
        tokens += count_tokens(canonical_json(call.schema), family)
    return tokens * usual.prompt_share


def _language_of(call: ProviderCall) -> str:
    """The language that its prompt is written in."""
    text = call.messages[0].content
    return "zh" if 2 * count_wide(text) > len(text) else "en"


def is_asked(spec: ModelSpec) -> bool:
    return spec.provider == "scripted" and spec.name == CALLED_BY_NAME


class DryAsker(Asker):
    """An `Asker` that asks nobody. Its answers depend on the item and the request only."""

    def __init__(
        self,
        stage: str,
        row_key: str,
        settings: Settings,
        models: Mapping[str, ModelSpec],
        history: UsageHistory,
        asked: list[_Asked],
        until: str | None = None,
    ) -> None:
        super().__init__(stage, row_key, settings)
        self._until = until
        self._models = models
        self._history = history
        self._asked = asked
        self._times = Counter[str]()
        self._last_reply = ""

    @property
    def last_reply(self) -> str:
        return self._last_reply

    async def send(self, request: Request) -> Any:
        """A reply of the usual length; ModelError where none fits the reply model."""
        purpose = request.purpose
        spec = self._models[request.alias]
        call, usual = first_call(spec, request, None), self._history.usual(self._stage, purpose, spec)
        self._times[purpose] += 1
        text, completion = self._answer(call, usual, _language_of(call), purpose)
        tokens = _prompt_tokens(call, usual, text)
        self._asked.append(_Asked(request.alias, purpose, tokens, completion, request.max_tokens, usual))
        self._last_reply = text
        if request.reply is None:
            return text
        try:
            return request.reply.model_validate_json(text)
        except ValidationError as error:
            raise ModelError("invalid", f"a dry run made no reply that fits: {error}", attempts=1) from None

    def _answer(self, call: ProviderCall, usual: UsualUsage, language: str, purpose: str) -> tuple[str, float]:
        """A reply, and its tokens."""
        if is_asked(call.model):
            text = from_schema(call)
            return text, float(make_reply(text, call).usage.completion_tokens or 0)
        text = self._written(call, usual, language, purpose)
        written = count_tokens(text, call.model.family) + usual.thinking_tokens
        return text, min(written if usual.completion_tokens is None else usual.completion_tokens, call.max_tokens)

    def _written(self, call: ProviderCall, usual: UsualUsage, language: str, purpose: str) -> str:
        seed, family = seed_of("dry run", self._row_key, purpose, self._times[purpose], call.sample), call.model.family
        a_token = len(_CHINESE) / count_tokens(_CHINESE, family) if language == "zh" else 1 / count_tokens("a", family)
        if call.schema is None:
            tokens = usual.text_tokens if usual.completion_tokens is None else usual.completion_tokens
            return _Writer(seed, usual, language, round(tokens * a_token), self._until).write(1, 1 << 20, "")
        characters = usual.text_tokens * a_token
        if usual.completion_tokens is not None:
            bare = _Writer(seed, usual, language, 0, self._until)
            rest = usual.completion_tokens - count_tokens(json.dumps(bare.fill(call.schema)), family)
            characters = max(rest, 0) * a_token / max(bare.n_texts, 1)
        value = _Writer(seed, usual, language, round(characters), self._until).fill(call.schema)
        self._end(value, usual, seed, purpose)
        return json.dumps(value, ensure_ascii=False)

    def _end(self, value: Any, usual: UsualUsage, seed: int, purpose: str) -> None:
        """Lets a loop end when it usually does."""
        ending = usual.ending
        if ending is None or not isinstance(value, dict):
            return
        odds = random.Random(seed_of("length", self._seed, self._row_key, purpose)).random()
        length = max(ending.replies, math.floor(usual.requests_a_row + odds))
        if self._times[purpose] > length - ending.replies:
            value[ending.field] = ending.then
        elif ending.before is not None:
            value[ending.field] = ending.before


class _Writer(SchemaFiller):
    """Fills a schema with texts of about so many characters, and with what replies usually decide. `until`: a field
    that says what becomes of the item; the other yes-or-no fields of its reply, which it follows from, are true."""

    def __init__(self, seed: int, usual: UsualUsage, language: str, characters: int, until: str | None) -> None:
        super().__init__(random.Random(seed))
        self.n_texts = 0
        self._usual = usual
        self._language = language
        self._characters = characters
        self._until = until if until in usual.chances else None

    def write(self, shortest: int, longest: int, name: str) -> str:
        self.n_texts += 1
        length = max(shortest, min(longest, self._characters), 1)
        if self._language == "zh":
            return "".join(self.source.choices(_CHINESE, k=length))
        text = ""
        while len(text) < length:
            text = f"{text} {self.sentence(7)}" if text else self.sentence(7)
        return text[: length - 1] + "."

    def chance_of(self, name: str) -> float:
        if self._until not in (None, name):
            return 1.0
        return self._usual.chances.get(name, super().chance_of(name))

    def items_of(self, name: str, fewest: int, most: int) -> int:
        usual = self._usual.items.get(name)
        if usual is None:
            return super().items_of(name, fewest, most)
        return min(max(math.floor(usual + self.source.random()), fewest), max(fewest, most))


def _plan_calls(
    asked: Sequence[_Asked],
    share: float,
    settings: Settings,
    models: Mapping[str, ModelSpec],
    stage: str,
    spread: float,
) -> list[PlannedCalls]:
    """What was asked, `share` times, by model and purpose in the order in which they were first asked."""
    of: dict[tuple[str, str], list[_Asked]] = defaultdict(list)
    for one in asked:
        of[one.alias, one.purpose].append(one)
    batched = in_batches(settings, stage)
    return [
        _plan_calls_of_purpose(several, share, models[alias], settings.llm.max_reasks, spread, batched=batched)
        for (alias, _), several in of.items()
    ]


def _plan_calls_of_purpose(
    asked: Sequence[_Asked], share: float, spec: ModelSpec, reasks: int, spread: float, *, batched: bool
) -> PlannedCalls:
    usual, n = asked[0].usual, len(asked) * share
    again, tokens_spread = (1.0, COUNTED_CLOSELY) if is_asked(spec) else (usual.calls, usual.spread)
    prompt = sum(one.prompt_tokens for one in asked) / len(asked)
    completion = sum(one.completion_tokens for one in asked) / len(asked)
    pricing = pricing_of(spec, batched=batched)
    price = pricing(Usage(round(prompt), round(prompt * usual.cached_share), round(completion)))
    number = n * again
    counted = (spread, tokens_spread if usual.ending else COUNTED_CLOSELY)
    most = [usage for one in asked for usage in _longest_replies(one, reasks, spec)]
    dearest = [pricing(usage) for usage in most]
    known = [each for each in dearest if each is not None]
    seconds = completion / usual.tokens_per_second if usual.call_seconds is None else usual.call_seconds
    return PlannedCalls(
        spec.alias,
        asked[0].purpose,
        requests=Expected.exactly(n).spread(spread),
        calls=Expected.exactly(number).spread(*counted),
        prompt_tokens=Expected.exactly(number * prompt).spread(*counted, tokens_spread),
        completion_tokens=Expected.exactly(number * completion).spread(*counted, tokens_spread),
        dollars=None if price is None else Expected.exactly(number * price).spread(*counted, tokens_spread),
        most_tokens=share * sum((usage.prompt_tokens or 0) + (usage.completion_tokens or 0) for usage in most),
        most_dollars=share * sum(known) if len(known) == len(dearest) else None,
        call_seconds=seconds,
        basis=usual.basis,
        n=usual.n,
    )


def _longest_replies(one: _Asked, reasks: int, spec: ModelSpec) -> list[Usage]:
    """The usage of each call of a request that is asked again as often as it may be: the first reply was cut off, then
    each has twice the tokens, and shows what was wrong with the one before. A prompt longer than the model's context
    is turned down, which costs nothing."""
    longest = math.inf if spec.context_tokens is None else spec.context_tokens
    complaint = QUOTED_CHARACTERS * usual_table().tokens_a_character
    return [
        Usage(
            int(min(one.prompt_tokens + ask * (min(2 * one.max_tokens, complaint) + complaint / 10), longest)),
            0,
            one.max_tokens * (2 if ask else 1),
        )
        for ask in range(1 + reasks)
    ]
