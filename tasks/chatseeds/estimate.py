"""What the chatseeds stage asks: one request to the seeder for each of the first personas of every pool."""

from __future__ import annotations

from tasks.chatseeds.prompts import SEED, seed_inputs, seed_reply
from tasks.chatseeds.task import Brief, seed_of_reply
from tasks.foundation.planning.estimate import Ask, Estimate, Kind, Portion, View
from tasks.foundation.planning.extremes import largest, smallest
from tasks.foundation.planning.meter import PromptSize
from tasks.foundation.planning.span import Span


def estimate(view: View) -> Estimate:
    section = view.settings.chatseeds
    language, meter = section.language, view.meter(section.seeder)
    personas = view.kind("persona_candidates", None)
    sampled = Span.total(portion.rows.at_most(section.per_pool) for portion in view.portions("persona_pool"))
    if personas is None or not sampled.high:
        return Estimate()
    prompts = [
        meter.messages(SEED.render(language, seed_inputs(persona.description, language))) for persona in personas.both
    ]
    reply = meter.reply(seed_reply(), language)
    ask = Ask(section.seeder, "seed", sampled, PromptSize.around(prompts), reply, section.max_tokens)
    brief = Brief("seed", "pool", 0, "persona", "")
    short, long = (seed_of_reply(brief, language, make(seed_reply(), language)) for make in (smallest, largest))
    seeds = Portion(sampled, (Kind(language, short, long),))
    return Estimate([ask], {"chat_seeds": [seeds]}, ["every chat seed can be used"])
