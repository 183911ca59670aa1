"""Personas become ChatSEEDs: where a conversation starts and what it is to reach (EYT-Bench section 3.3).

Reads persona_pool and persona_candidates. Writes chat_seeds, one row for each of the first `per_pool`
ranks of every pool, from one request to the seeder. `chatseeds.language` is the language of the prompt and
of the conversation.

When the seeder fails:

* in passing (no connection, no quota): the seed is a retryable reject, counted as failed, and the next run
  asks again.
* for good (its reply stays unreadable, it refuses): the seed is a row with `error` and no content, counted as
  filtered under `error`. Nothing is filled in from a template, and no conversation uses the row. The same
  request would get the same answer out of the reply cache, so a run that can ask something else makes the row
  anew: another seeder, prompt or setting, or new draws (`run.fresh`).

Error rows count against `max_failure_rate`: when there are too many, nothing is committed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tasks.chatseeds.prompts import SEED, SeedReply, make_seed_inputs
from tasks.foundation.errors import ModelError, TooManyFailures
from tasks.foundation.ids import content_id
from tasks.foundation.settings.sections import ChatseedsSection
from tasks.foundation.stage import Asker, Finished, Prepared, Rows, Stage, StageContext
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.tables.evaluation import ChatSeed
from tasks.foundation.tables.types import Language

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PersonaToSeed:
    """A sampled persona. `description` is what the seeder sees of it."""

    chat_seed_id: str
    pool: str
    rank: int
    persona_id: str
    description: str


def prepare(context: StageContext) -> Prepared:
    """The first `per_pool` ranks of every pool are items; the others are not sampled."""
    pool, per_pool = context.read("persona_pool"), context.settings.chatseeds.per_pool
    for name, size in pool.group_by("pool").len().sort("pool").iter_rows():
        if size < per_pool:
            log.warning("pool %s holds only %d personas where chatseeds.per_pool asks for %d", name, size, per_pool)
    sampled = _draw_personas(context)
    left = pool.height - sampled.height
    accounting = Accounting(left, 0, {"not_sampled": left} if left else {})
    return Prepared([seed_id(persona_id) for persona_id in sampled["persona_id"]], accounting=accounting)


def _draw_personas(context: StageContext) -> pl.DataFrame:
    return context.read("persona_pool", pl.col("rank") < context.settings.chatseeds.per_pool)


def seed_id(persona_id: str) -> str:
    """The id of a persona's seed."""
    return content_id("chatseed", persona_id)


def load_personas(context: StageContext, keys: Sequence[str]) -> Mapping[str, PersonaToSeed]:
    """The personas of some seeds, by the id of the seed."""
    wanted = set(keys)
    rows = [
        row | {"chat_seed_id": seed_id(row["persona_id"])}
        for row in _draw_personas(context).select("pool", "rank", "persona_id").iter_rows(named=True)
    ]
    rows = [row for row in rows if row["chat_seed_id"] in wanted]
    theirs = pl.col("persona_id").is_in([row["persona_id"] for row in rows])
    descriptions = dict(context.read("persona_candidates", theirs, ("persona_id", "description")).iter_rows())
    return {row["chat_seed_id"]: PersonaToSeed(**row, description=descriptions[row["persona_id"]]) for row in rows}


async def work(context: StageContext, persona: PersonaToSeed, ask: Asker) -> Rows:
    """One seed; a row with `error` where the seeder fails for good."""
    section = context.settings.chatseeds
    try:
        reply: SeedReply = await ask(
            SEED,
            make_seed_inputs(persona.description, section.language),
            language=section.language,
            alias=section.seeder,
            purpose="seed",
            temperature=section.temperature,
            max_tokens=section.max_tokens,
        )
    except ModelError as error:
        if error.may_pass_later:
            raise
        return {"chat_seeds": [make_failed_seed(persona, section.language, error)]}
    return {"chat_seeds": [read_seed(persona, section.language, reply)]}


def read_seed(persona: PersonaToSeed, language: Language, reply: SeedReply) -> ChatSeed:
    """The row of a readable reply."""
    return ChatSeed(**_key(persona, language), **reply.model_dump(), error=None)


def make_failed_seed(persona: PersonaToSeed, language: Language, error: ModelError) -> ChatSeed:
    """The row that says why there is no seed."""
    empty: dict[str, Any] = dict.fromkeys(SeedReply.model_fields)
    return ChatSeed(**_key(persona, language), **empty, error=f"{error.kind}: {error}")


def _key(persona: PersonaToSeed, language: Language) -> dict[str, Any]:
    return {
        "chat_seed_id": persona.chat_seed_id,
        "pool": persona.pool,
        "rank": persona.rank,
        "persona_id": persona.persona_id,
        "language": language,
    }


def finish(context: StageContext) -> Finished:
    """Counts the error rows as filtered; TooManyFailures when they are too many to go on."""
    seeds, section = context.made("chat_seeds"), context.settings.chatseeds
    errors = seeds["error"].drop_nulls()
    if len(errors) > section.max_failure_rate * seeds.height:
        raise TooManyFailures(
            f"stage chatseeds stopped: the seeder {section.seeder!r} gave no usable seed for {len(errors)} of "
            f"{seeds.height} personas, more than chatseeds.max_failure_rate = {section.max_failure_rate:g} allows. "
            f"The first: {errors[0]} Name another model in chatseeds.seeder, or raise the limit."
        )
    return Finished({}, {"error": len(errors)} if len(errors) else {})


STAGE = Stage(
    name="chatseeds",
    doc="Pooled personas → the seeds of conversations: topic, feelings, intents, first words.",
    section=ChatseedsSection,
    benchmark="eyt",
    reads=("persona_pool", "persona_candidates"),
    prepare=prepare,
    load_items=load_personas,
    work=work,
    worked=("chat_seeds",),
    finish=finish,
    prompts=(SEED,),
    taxonomies=("user_emotion", "latent_intent", "explicit_intent"),
    roles=lambda settings: {"seeder": [settings.chatseeds.seeder]},
)
