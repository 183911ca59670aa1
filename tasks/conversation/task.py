"""Conversations of a simulated user with a model under test (EYT-Bench section 3.4, Algorithm 1).

Reads chat_seeds (those without an error) and persona_candidates. Writes conversations and
conversation_turns, for the target of this run; every target has a run and a commit of its own.

Turn 1's text and gold labels are the seed's. Each turn takes three requests, each with a prompt, a history and
a ledger purpose of its own:

* `perception`, to the target: label lists, the conversation so far as one text, the last user message.
* `generation`, to the target: a system message about manner, the conversation so far as a chat, the last user
  message. No label, rubric or goal; the prediction is not in it.
* `simulation`, to the simulator: label lists, persona, topic, first emotion, final intent, and the texts of
  both sides. No prediction, no prompt of the target, no earlier label.

The persona is in the target's requests only as far as `persona_to_target` says (none: in neither; perception;
both). The simulator is also asked after the last answer (Algorithm 1, line 7), so T answered turns take 3·T
requests, plus the simulator's re-asks. Its user turn that meets the stop rule is not answered; it is kept in
conversations.final_user_text and final_progress. Re-asks are counted in the row of the user turn they led to;
all of them, those for the unanswered turn included, are requests of purpose `simulation` in llm_calls.

Failures (see `faults`):

* infrastructure at an answer or a user turn: the failure is raised, the conversation is a retryable reject and
  the commit partial. The next run goes on: every reply so far comes out of the cache. So no row with fault
  `infra` is written here; a build that is closed as it is counts these conversations by their rejects. A
  request that the provider turns down without a word is raised as well and is not asked again.
* infrastructure at a prediction: the row's perception_fault says which kind; the conversation goes on.
* the simulator's: rows are kept, the conversation is void, counted as filtered under `simulator_fault`.
* the target's: rows are kept, the conversation stops and counts. Its last row has no assistant_text; what was
  predicted there is kept as it is, and scored as wrong by metrics.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cache

import polars as pl

from tasks.conversation.families import Party, check_families, find_clashes
from tasks.conversation.labels import TAXONOMIES
from tasks.conversation.loop import ConversationState, Event, Fault, begin, step
from tasks.conversation.prompts import ANSWER, PERCEIVE, SIMULATE
from tasks.conversation.rows import make_conversation_row, make_turn_rows
from tasks.conversation.setup import ConversationSetup, make_opening, row_key
from tasks.conversation.simulator import Simulator
from tasks.conversation.target import Target
from tasks.foundation.demo.records import load_rows_by
from tasks.foundation.settings.sections import ConversationSection
from tasks.foundation.stage import Asker, Finished, Prepared, Rows, Stage, StageContext
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.tables.evaluation import ChatSeed

log = logging.getLogger(__name__)


def list_parties(context: StageContext) -> list[Party]:
    """Every model of the settings in its role; the target of this run among them."""
    settings = context.settings
    targets = dict.fromkeys([*settings.conversation.targets, *([context.member] if context.member else [])])
    return [
        Party("simulator", settings.conversation.simulator, context.model(settings.conversation.simulator).family),
        *(Party("target", alias, context.model(alias).family) for alias in targets),
        *(Party("judge", alias, context.model(alias).family) for alias in settings.judging.judges),
    ]


def check(context: StageContext) -> None:
    """The family rule, or the reason why it is waived."""
    waiver = context.settings.conversation.family_waiver
    check_families(list_parties(context), waiver)
    for a, b in find_clashes(list_parties(context)):
        _tell_waived(a, b, waiver)


@cache
def _tell_waived(a: Party, b: Party, waiver: str | None) -> None:
    """Said once a process: the rule is checked for every target, and before a run for all of them."""
    log.warning("%s and %s are of one family (%s); waived: %s", a, b, a.family, waiver)


def prepare(context: StageContext) -> Prepared:
    """Every usable seed is an item, `samples` times."""
    samples = range(context.settings.conversation.samples)
    seeds = context.read("chat_seeds")
    usable = _select_usable(seeds)["chat_seed_id"].to_list()
    left = (seeds.height - len(usable)) * len(samples)
    if not usable:
        log.warning("no chat seed can be used, so there is no conversation; see chat_seeds.error")
    items = [row_key(seed, _target(context), sample) for seed in usable for sample in samples]
    return Prepared(items, accounting=Accounting(left, 0, {"seed_error": left} if left else {}))


def _select_usable(seeds: pl.DataFrame) -> pl.DataFrame:
    return seeds.filter(pl.col("error").is_null())


def _target(context: StageContext) -> str:
    assert context.member is not None, "conversation runs once for every target"
    return context.member


def load_setups(context: StageContext, keys: Sequence[str]) -> Mapping[str, ConversationSetup]:
    """Seed and persona of each conversation."""
    places = {key: (key.partition("/")[0], int(key.rpartition("/")[2])) for key in keys}
    seeds = load_rows_by(
        context.read, "chat_seeds", ChatSeed, "chat_seed_id", (seed_id for seed_id, _ in places.values())
    )
    theirs = pl.col("persona_id").is_in([seed.persona_id for seed in seeds.values()])
    descriptions = dict(context.read("persona_candidates", theirs, ("persona_id", "description")).iter_rows())
    return {
        key: ConversationSetup(seeds[seed_id], descriptions[seeds[seed_id].persona_id], _target(context), sample)
        for key, (seed_id, sample) in places.items()
    }


async def work(context: StageContext, setup: ConversationSetup, ask: Asker) -> Rows:
    """One conversation, from the seed's first query until it ends."""
    section = context.settings.conversation
    target, simulator = Target(ask, section, setup), Simulator(ask, section, setup)
    talk = begin(make_opening(setup.seed))
    while talk.wants is not None:
        event = await _next(talk, target, simulator)
        if isinstance(event, Fault):
            log.info("conversation of %s with %s: %s", setup.seed.chat_seed_id, setup.target, event.why)
        talk = step(talk, event, section.max_turns)
    return {
        "conversations": [make_conversation_row(setup, section, talk)],
        "conversation_turns": make_turn_rows(setup, section, talk),
    }


async def _next(talk: ConversationState, target: Target, simulator: Simulator) -> Event:
    if talk.wants == "prediction":
        return await target.predict(talk.turns)
    if talk.wants == "answer":
        return await target.answer(talk.turns)
    return await simulator.speak(talk.turns)


def finish(context: StageContext) -> Finished:
    """Counts the void conversations as filtered; their rows stay."""
    conversations = context.made("conversations")
    void = conversations.filter(pl.col("fault") == "simulator").height
    if void:
        log.warning(
            "%d of %d conversations are void: the simulator %r gave no usable user turn",
            *(void, conversations.height, context.settings.conversation.simulator),
        )
    return Finished({}, {"simulator_fault": void} if void else {})


STAGE = Stage(
    name="conversation",
    doc="Chat seeds → conversations of a simulated user with each target.",
    section=ConversationSection,
    benchmark="eyt",
    reads=("chat_seeds", "persona_candidates"),
    items_from={"": "chat_seeds"},
    prepare=prepare,
    load_items=load_setups,
    work=work,
    worked=("conversations", "conversation_turns"),
    finish=finish,
    prompts=(PERCEIVE, ANSWER, SIMULATE),
    taxonomies=TAXONOMIES,
    roles=lambda settings: {
        "targets": settings.conversation.targets,
        "simulator": [settings.conversation.simulator],
    },
    check=check,
    fan_out="targets",
)
