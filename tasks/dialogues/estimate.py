"""What the dialogues stage asks of each selected pairing: one to three texts, labels in chunks, an epilogue."""

from __future__ import annotations

from tasks.dialogues.guards import Line, Mended
from tasks.dialogues.prompts import (
    ANNOTATE,
    EPILOGUE,
    WRITE,
    AnalysisInputs,
    AnnotateInputs,
    Epilogue,
    UtteranceLabels,
    WrittenTurn,
    labels_of_turns,
    written_dialogue,
)
from tasks.dialogues.task import DRAWS, Brief, Draft, analysis_inputs, as_dialogue, as_utterance, chunks, write_inputs
from tasks.foundation.planning.estimate import Ask, Estimate, Kind, Portion, View
from tasks.foundation.planning.extremes import largest, smallest
from tasks.foundation.planning.meter import Meter, PromptSize, Reply
from tasks.foundation.planning.span import Span
from tasks.foundation.tables.dialogues import Dialogue, Utterance


def estimate(view: View) -> Estimate:
    asks: list[Ask] = []
    dialogues: list[Portion] = []
    utterances: list[Portion] = []
    for portion in view.portions("conflicts"):
        drafts = [pair for kind in portion.kinds if (pair := _drafts(view, kind)) is not None]
        if not drafts or not portion.rows.high:
            continue
        asks += _asks(view, portion.rows, drafts)
        dialogues.append(Portion(portion.rows, tuple(_dialogues(view, *pair) for pair in drafts)))
        utterances.append(Portion(portion.rows, tuple(_utterances(*pair) for pair in drafts)))
    section = view.settings.dialogues
    said = (
        f"a dialogue has {section.min_turns} to {section.max_turns} utterances, written in one to {DRAWS} draws; "
        "no pairing is given up"
    )
    return Estimate(asks, {"dialogues": dialogues, "utterances": utterances}, [said] if asks else [])


Drafted = tuple[Brief, Draft]


def _drafts(view: View, kind: Kind) -> tuple[Drafted, Drafted] | None:
    """The shortest and the longest dialogue of a language, each with what it is written from."""
    scenes, people = view.kind("scenes", kind.language), view.kind("characters", kind.language)
    if scenes is None or people is None:
        return None
    section, turn = view.settings.dialogues, {"short": smallest, "long": largest}
    found = []
    for place, (turns, make) in enumerate(((section.min_turns, turn["short"]), (section.max_turns, turn["long"]))):
        brief = Brief(kind.both[place], scenes.both[place], people.both[place], people.both[place])
        text = make(WrittenTurn, kind.language).text
        lines = tuple(Line(1 + number % 2, text) for number in range(turns))
        found.append((brief, Draft(Mended(lines, (), False), "ended")))
    return found[0], found[1]


def _asks(view: View, rows: Span, drafts: list[tuple[Drafted, Drafted]]) -> list[Ask]:
    section = view.settings.dialogues
    meter, alias, budget = view.meter(section.writer), section.writer, section.max_tokens
    languages = [short[0].language for short, _ in drafts]
    every = [one for pair in drafts for one in pair]
    writing = [
        meter.messages(WRITE.render(brief.language, write_inputs(brief, section.min_turns, section.max_turns)))
        for brief, _ in every
    ]
    written = meter.reply(written_dialogue(section.min_turns, section.max_turns), languages[0])
    asks = [Ask(alias, "write", Span(rows.low, DRAWS * rows.high), PromptSize.around(writing), written, budget)]
    fewest = list(chunks(section.min_turns, section.utterances_per_request))
    most = list(chunks(section.max_turns, section.utterances_per_request))
    for place, (first, last) in enumerate(most):
        surely = place < len(fewest)
        seen = [_annotate(meter, one, first, last) for one in every]
        reply = _labels(meter, fewest[place] if surely else (first, last), (first, last), languages[0])
        asks.append(
            Ask(alias, "annotate", Span(rows.low if surely else 0, rows.high), PromptSize.around(seen), reply, budget)
        )
    closing = [meter.messages(EPILOGUE.render(brief.language, analysis_inputs(brief, draft))) for brief, draft in every]
    asks.append(Ask(alias, "epilogue", rows, PromptSize.around(closing), meter.reply(Epilogue, languages[0]), budget))
    return asks


def _annotate(meter: Meter, one: Drafted, first: int, last: int) -> PromptSize:
    brief, draft = one
    seen: AnalysisInputs = analysis_inputs(brief, draft)
    inputs = AnnotateInputs(**seen.model_dump(), first=first, last=last)
    return meter.messages(ANNOTATE.render(brief.language, inputs))


def _labels(meter: Meter, fewest: tuple[int, int], most: tuple[int, int], language: str) -> Reply:
    """The labels of a chunk: at least those of the shortest dialogue, with the schema of the longest."""
    schema = Span.around(meter.reply(labels_of_turns(*chunk), language).schema for chunk in (fewest, most))
    return Reply(schema, meter.reply(labels_of_turns(*fewest), language).least)


def _dialogues(view: View, short: Drafted, long: Drafted) -> Kind:
    language = short[0].language
    rows: list[Dialogue] = [
        as_dialogue(brief, draft, make(Epilogue, language), view.settings.dialogues.writer)
        for (brief, draft), make in ((short, smallest), (long, largest))
    ]
    return Kind.made_of(language, rows)


def _utterances(short: Drafted, long: Drafted) -> Kind:
    language = short[0].language
    rows: list[Utterance] = [
        as_utterance("dialogue", 1, draft.lines[0], make(UtteranceLabels, language))
        for (_, draft), make in ((short, smallest), (long, largest))
    ]
    return Kind.made_of(language, rows)
