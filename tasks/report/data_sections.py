"""The sections on how the benchmark was made: funnel, people, labels, votes, and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tasks.foundation.store.commits import Commit
from tasks.report import charts, numbers
from tasks.report.blocks import Block, Note, Pairs, Section, make_filled_table, make_section
from tasks.report.facts import made_for
from tasks.report.people_sections import characters, pools
from tasks.report.provenance import list_asked_for
from tasks.report.questions import QueryResult, Record

Ask = Callable[[str], QueryResult]

PARTS = {"produced": charts.SERIES[0], "filtered": charts.NEUTRAL, "failed": charts.BAD}
ENDINGS = {
    "kept_by_all": charts.SERIES[0],
    "unanimous": charts.SERIES[5],
    "majority": charts.SERIES[2],
    "manual": charts.SERIES[4],
    "rejected": charts.BAD,
}


def make_data_sections(ask: Ask, commits: Mapping[str, Commit], build: str) -> Iterator[Section]:
    """In the order of the page."""
    yield funnel(ask, commits, build)
    yield pools(ask, commits, build)
    yield characters(ask, commits, build)
    yield labels(ask, build)
    yield voting(ask, build)
    yield contents(ask, commits, build)


def funnel(ask: Ask, commits: Mapping[str, Commit], build: str) -> Section:
    answer = ask("funnel")
    records = [{**record, "run": _run(record)} for record in answer.records]
    losses = ask("losses")
    return make_section(
        "funnel",
        "Where the rows went",
        "Every row that goes into a stage ends produced, filtered or failed: rows in = produced + filtered + failed.",
        [
            (
                "",
                [
                    charts.shares("How each stage's rows ended.", records, "run", PARTS, "rows in"),
                    make_filled_table(answer, "Stages in the order of their commits.", drop=("build",)),
                ],
            ),
            ("Asked for and got", [list_asked_for(commits, ask("asked_for"))]),
            (
                "Why rows ended early",
                [_reasons(commits), make_filled_table(losses, "Rejected rows and duplicates, by reason.")],
            ),
        ],
        Note("No stage has been committed.", "missing", f"colloquy run --build {build}"),
    )


def _run(record: Record) -> str:
    return record["stage"] if record["member"] is None else f"{record['stage']} @ {record['member']}"


def _reasons(commits: Mapping[str, Commit]) -> Pairs | None:
    """What the commits count by reason; a row that was not drawn is no row of any table."""
    said = {
        run.replace("@", " @ "): {**commit.accounting.filtered, **commit.accounting.failed}
        for run, commit in commits.items()
    }
    pairs = tuple(
        (run, ", ".join(f"{reason.replace('_', ' ')} {count:,}" for reason, count in sorted(counts.items())))
        for run, counts in said.items()
        if counts
    )
    return Pairs("Rows filtered and failed by reason, as the commits count them.", pairs) if pairs else None


def labels(ask: Ask, build: str) -> Section:
    answer, spoken = ask("label_distributions"), ask("conversation_labels")
    balance = ask("selection_balance")
    demo = [
        _by_language(answer, label, title)
        for label, title in {
            "goal_type": "Goal types of the scenes",
            "sentiment": "Sentiments of the utterances",
            "emotion": "Emotions of the utterances",
        }.items()
    ]
    said = [
        charts.bars(
            f"{title}, pool {pool}: gold and predicted.",
            spoken.where(pool=pool, label=label).records,
            "found",
            {"gold": "gold", "predicted": "predicted"},
            "turns",
        )
        for pool in spoken.values("pool")
        for label, title in {
            "explicit": "Explicit intents",
            "latent": "Latent intents",
            "emotion": "Emotions",
        }.items()
    ]
    return make_section(
        "labels",
        "Labels",
        "How the labels are spread. What one model writes leans to few of them; a benchmark should not.",
        [
            (
                "DEMO",
                [*demo, make_filled_table(answer, "All labels of scenes, characters and dialogues.", folded=True)],
            ),
            (
                "Selection",
                [make_filled_table(balance, "Pairings by goal type and language, on their way to a dialogue.")],
            ),
            (
                "Length",
                [
                    make_filled_table(
                        ask("dialogue_lengths"),
                        "Utterances asked for (dialogues.target_turns) and written: mean, standard deviation, longest, "
                        "and by how many a dialogue is off.",
                    )
                ],
            ),
            (
                "EYT-Bench",
                [*said, make_filled_table(spoken, "Labels of all user turns, of void conversations too.", folded=True)],
            ),
        ],
        Note("There is no scene, dialogue or conversation.", "missing", f"colloquy run --build {build}"),
    )


def _by_language(answer: QueryResult, label: str, title: str) -> Block | None:
    records = answer.where(label=label).records
    languages = sorted({record["language"] for record in records})
    found: dict[str, Record] = {}
    for record in records:
        row = found.setdefault(record["found"], {"found": record["found"], **dict.fromkeys(languages, 0)})
        row[record["language"]] = record["times"]
    ordered = sorted(found.values(), key=lambda row: -sum(row[language] for language in languages))
    return charts.bars(f"{title}.", ordered, "found", {language: language for language in languages}, "times")


def voting(ask: Ask, build: str) -> Section:
    outcomes, annotators, disputes, pending = (ask(name) for name in ("outcomes", "annotators", "disputes", "pending"))
    endings = [{**record, "of": f"{record['category']}, {record['language']}"} for record in outcomes.records]
    waiting = sum(record["pending"] for record in outcomes.records)
    said = (
        f"{numbers.plural(waiting, 'label waits', 'labels wait')} for a person: no majority of the panel decided, so "
        "the original stands until then."
        if waiting
        else "No label waits for a person."
    )
    return make_section(
        "voting",
        "Votes on the labels",
        "Annotators review each label. What they do not all keep goes to a blind vote of the panel, where a strict "
        "majority of the whole panel decides; without one, a person does.",
        [
            (
                "Outcomes",
                [
                    charts.shares("How the labels were decided.", endings, "of", ENDINGS, "labels"),
                    make_filled_table(outcomes, "Labels by category and language."),
                    make_filled_table(disputes, "The same by element, the most disputed first.", folded=True),
                ],
            ),
            (
                "Faithful labels",
                [
                    make_filled_table(
                        ask("faithful_labels"),
                        "Labels that were decided before the dialogue was written: how often annotators keep them, and "
                        "how often the verdict does, the least kept first.",
                    )
                ],
            ),
            ("Annotators", [make_filled_table(annotators, "What each annotator answered.")]),
            (
                "Pending",
                [Note(said), make_filled_table(pending, "Labels that wait for a person.", folded=len(pending) > 20)],
            ),
        ],
        Note("No label has been voted on.", "missing", f"colloquy run --build {build} --only voting"),
        only="demo",
    )


def contents(ask: Ask, commits: Mapping[str, Commit], build: str) -> Section:
    answer = ask("benchmark_contents")
    last = "chatseeds" if made_for(commits) == "eyt" else "curation"
    return make_section(
        "contents",
        "The benchmark",
        "What targets are asked: items of element awareness, episodes of interaction, and chat seeds.",
        [("", [make_filled_table(answer, "Items, episodes and chat seeds by task, goal type or pool.")])],
        Note("Nothing has been released.", "missing", f"colloquy run --build {build} --only {last}"),
    )
