"""The sections on what was measured: leaderboards, judges and agreement, faults, the simulator, and cost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tasks.metrics.catalogue import DIMENSION_METRIC, METRICS, SUB_INDICATORS
from tasks.report import boards, charts, numbers
from tasks.report.blocks import Block, BoardBlock, Note, Section, make_filled_table, make_section, make_table
from tasks.report.boards import DEMO_COLUMNS, EYT_COLUMNS, EYT_OBJECTIVE, EYT_SUBJECTIVE, draw_board, read_board
from tasks.report.conversation_blocks import ALL, name_pool, show_confusions, show_drifts, show_lengths
from tasks.report.data_sections import Ask
from tasks.report.questions import QueryResult, Record

DEMO_PANELS = {metric: METRICS[metric].label for metric in ("overall_pooled", "awareness", "interaction")}
EYT_PANELS = {
    metric: METRICS[metric].label + (" (lower is better)" if METRICS[metric].better == "low" else "")
    for metric in (
        *("latent_accuracy", "emotion_accuracy", "drift_latent", "satisfaction"),
        *("empathy_weighted", "persona_alignment_weighted"),
    )
}
"""The metrics that are drawn."""
CAPTIONS = {
    "demo": "DEMO, all languages: element awareness and dialogue agent interaction.",
    "eyt": "EYT-Bench, all pools and languages.",
}
SHORT, LONG = 12, 30
"""Rows up to which a table is open: one beside others, and one that is all there is to see."""

FAMILY_COLUMNS = (
    *("satisfaction", "ficr", "explicit_accuracy", "latent_accuracy", "drift_latent"),
    *(f"{metric}_weighted" for metric in DIMENSION_METRIC.values()),
    "anthropomorphic_early_minus_late",
)
"""Table 5 of EYT-Bench, and its appendix K."""
UNLIKE = (
    "Conversations were held under {n} different conditions (simulator, what the target is told of the persona, turns "
    "at most, stop rule, version of the simulator's prompt). Scores from different ones stand in one board below, but "
    "are not compared: the best of a column is the best of those under the same conditions."
)
DIMENSIONS = {f"{metric}_unweighted": dimension for dimension, metric in DIMENSION_METRIC.items()}
SCOPES = {
    "annotators": "Annotators with one another",
    "voters": "Voters with one another",
    "judges": "Judges with one another",
    "human": "People with the panel and with one another",
    "judge_human": "Judges with people",
    "position": "Voters with themselves, candidates reversed",
    "retest": "Judges with themselves, drawn twice",
    "variance": "Where the differences of scores come from",
}


def make_score_sections(ask: Ask, build: str) -> Iterator[Section]:
    """In the order of the page."""
    yield demo(ask, build)
    yield eyt(ask, build)
    yield judges(ask, build)
    yield agreement(ask, build)
    yield faults(ask, build)
    yield simulator(ask, build)
    yield likeness(ask, build)
    yield guards(ask, build)


def result(ask: Ask, build: str) -> Section:
    """The boards over everything, one a benchmark: what the page opens with."""
    facts = {record["target"]: record for record in ask("cost_by_target").records}
    groups: list[tuple[str, Sequence[Block | None]]] = []
    for benchmark, name, columns, kinds in (
        ("demo", "DEMO", DEMO_COLUMNS, ("language",)),
        ("eyt", "EYT-Bench", (*EYT_COLUMNS, *SUB_INDICATORS), ("pool", "language")),
    ):
        answer = ask(f"{benchmark}_leaderboard").where(**dict.fromkeys(kinds, ALL))
        board = read_board(answer, columns, facts)
        if board is not None:
            drawn = draw_board(board, CAPTIONS[benchmark], shown=boards.OPEN)
            few = _few_conversations(answer) if benchmark == "eyt" else _few_dialogues(answer, ask)
            said = [Note(boards.say_who_leads(board)), few, *_claims(answer)]
            pairs = ask("head_to_head").where(benchmark=benchmark, pool=ALL, language=ALL)
            against = [boards.draw_matrix(pairs, board, metric) for metric in pairs.values("metric")]
            groups.append((name, [*said, drawn, _legend([drawn], answer), *against]))
    return make_section(
        "result",
        "Result",
        "",
        groups,
        Note("No target has been scored.", "missing", f"colloquy run --build {build}"),
    )


def demo(ask: Ask, build: str) -> Section:
    answer, by_goal = ask("demo_leaderboard"), ask("demo_by_goal_type")
    whole = answer.where(language=ALL)
    by_language = [
        _board(answer.where(language=language), DEMO_COLUMNS, f"DEMO, {language}.", shown=boards.OPEN)
        for language in _languages(answer)
    ]
    few = [_few_dialogues(answer.where(language=language), ask, language) for language in _languages(answer)]
    return make_section(
        "demo",
        "DEMO in parts",
        "Judges give 0 to 10, 10 best. Overall is pooled over every single score, as the paper's table is; the mean "
        "of the two tasks stands beside it.",
        [
            (
                "",
                [
                    charts.estimates(
                        "Scores of 0–10, with 95 % intervals where there are any.",
                        whole.records,
                        DEMO_PANELS,
                        _order(whole, DEMO_COLUMNS),
                    )
                ],
            ),
            ("Differences", [_differences(answer)]),
            ("Thinking", list(_thinking(ask, "demo"))),
            ("By language", [next(filter(None, few), None), *by_language]),
            ("Faults", [_board(whole, boards.FAULTS, "Interactions that a fault ended.", folded=True)]),
            ("By goal type", list(_goal_types(by_goal))),
            ("Families", list(_families(ask, "demo"))),
        ],
        Note(
            "No target has been scored on element awareness or interaction.",
            "missing",
            f"colloquy run --build {build} --from awareness",
        ),
        only="demo",
    )


def _board(
    answer: QueryResult,
    columns: Sequence[str],
    caption: str,
    *,
    of: str = "target",
    folded: bool = False,
    shown: Collection[str] | None = None,
) -> BoardBlock | None:
    """The board of an answer's rows of one pool and language; None where there are none."""
    board = read_board(answer, columns)
    return None if board is None else draw_board(board, caption, of=of, folded=folded, shown=shown)


def _order(answer: QueryResult, columns: Sequence[str]) -> Sequence[str]:
    """The targets in the order of their board, for what is drawn beside it."""
    board = read_board(answer, columns)
    return () if board is None else board.targets


def _languages(answer: QueryResult) -> list[str]:
    """The languages that have boards of their own: none when there is only one."""
    languages = [language for language in answer.values("language") if language != ALL]
    return languages if len(languages) > 1 else []


def _differences(answer: QueryResult) -> Block | None:
    """How far each target is behind the best, paired on the same dialogues."""
    kept = {"pool", "language", "target", "metric", "best_minus_this", "difference_low", "p_holm", "is_primary"}
    drop = [name for name in answer.columns if name not in kept]
    return make_filled_table(
        answer.without(best_minus_this=None), "The best target less each other.", drop=drop, folded=True
    )


def _thinking(ask: Ask, benchmark: str) -> Iterator[Block | None]:
    """What thinking changes: a figure over all pools, and every difference."""
    pairs = ask("thinking_pairs").where(benchmark=benchmark)
    drop = ("benchmark", "pool") if benchmark == "demo" else ("benchmark",)
    caption = "Models that think less the same ones that do not, over what both have done; 0 is no difference."
    panels = DEMO_PANELS if benchmark == "demo" else EYT_PANELS
    yield charts.estimates(caption, _apart(pairs.where(pool=ALL).records, "thinking"), panels, differences=True)
    yield make_filled_table(pairs, "Thinking less not thinking.", drop=(*drop, "unit"), folded=True)


def _sources(ask: Ask) -> Iterator[Block | None]:
    """What changes with the persona pool: each target's values, and the order of the targets."""
    differences, ranks = ask("persona_sources"), ask("persona_source_ranks").without(spearman_rho=None)
    for one, other in sorted({(record["pool_a"], record["pool_b"]) for record in differences.records}):
        caption = f"Each target on {one} less the same on {other}; the pools have no dialogue in common."
        records = differences.where(pool_a=one, pool_b=other).records
        yield charts.estimates(caption, _apart(records, "target"), EYT_PANELS, differences=True)
    yield make_filled_table(
        differences, "Each target on one pool less the same on another.", drop=("unit",), folded=True
    )
    caption = "Spearman's ρ of the targets' order on two pools; n counts targets."
    yield make_filled_table(ranks, caption, folded=len(ranks) > SHORT)


def _apart(records: Sequence[Record], named: str) -> list[Record]:
    """Differences as `charts.estimates` draws them."""
    return [
        {
            "metric": record["metric"],
            "unit": record["unit"],
            "target": record[named],
            "value": record["difference"],
            "ci_low": record["difference_low"],
            "ci_high": record["difference_high"],
        }
        for record in records
    ]


def _goal_types(answer: QueryResult) -> Iterator[Block | None]:
    for metric in DEMO_PANELS:
        caption = f"By goal type: {METRICS[metric].label}."
        yield make_filled_table(answer.where(metric=metric), caption, drop=("metric", "unit"), folded=True)


def _families(ask: Ask, benchmark: str) -> Iterator[Block | None]:
    """A board of the model families for each pool or language, all targets of a family together; none where every
    target is of a family of its own."""
    answer = ask("families").where(benchmark=benchmark)
    targets = ask(f"{benchmark}_leaderboard").values("target")
    kind = "language" if benchmark == "demo" else "pool"
    columns = DEMO_COLUMNS if benchmark == "demo" else FAMILY_COLUMNS
    if len(answer.values("family")) in (0, 1, len(targets)):
        return
    for of in answer.values(kind):
        caption = "All targets of a family together" + ("." if of == ALL else f", {of}.")
        yield _board(_unmarked(answer.where(**{kind: of}), "family"), columns, caption, of="family", folded=of != ALL)


def eyt(ask: Ask, build: str) -> Section:
    answer, turns = ask("eyt_leaderboard"), ask("scores_by_turn")
    pools = sorted(answer.values("pool"), key=lambda pool: (pool == ALL, pool))
    groups: list[tuple[str, Sequence[Block | None]]] = []
    conditions = ask("simulation_conditions")
    if len(conditions) > 1:
        warning = Note(UNLIKE.format(n=len(conditions)), "warning")
        groups.append(("Conditions", [warning, make_table(conditions, "Who was talked to how.")]))
    for pool in pools:
        groups.append((name_pool(pool), list(_pool_blocks(answer.where(pool=pool, language=ALL), turns, pool))))
    for language in _languages(answer):
        whole = answer.where(pool=ALL, language=language)
        board = _board(whole, EYT_COLUMNS, f"EYT-Bench, all pools, {language}.", shown=boards.OPEN)
        groups.append((f"All pools, {language}", [_few_conversations(whole), board]))
    groups.append(("Differences", [_differences(answer)]))
    groups.append(("Thinking", list(_thinking(ask, "eyt"))))
    groups.append(("Persona sources", list(_sources(ask))))
    groups.append(("Families", list(_families(ask, "eyt"))))
    groups.append(("Length of conversations", list(show_lengths(ask("turn_counts")))))
    groups.append(("Drift", list(show_drifts(turns.where(metric="drift_latent"), ask("drift_and_ficr")))))
    groups.append(
        (
            "Early and late turns",
            [
                Note(
                    "The mean of turns 1 and 2 less the mean of the later ones, unweighted, in points of 100. Late "
                    "scores alone are no measure: which dialogues grow long depends on the target."
                ),
                make_filled_table(ask("early_late"), "Early less late, by pool, metric and target.", folded=True),
            ],
        )
    )
    groups.append(("Warm-up weight", list(_sweep(ask("alpha_sweep")))))
    groups.append(
        (
            "By gold label",
            [
                make_filled_table(ask("label_accuracy"), "Accuracy on turns with each gold label.", folded=True),
                *show_confusions(ask("label_confusions")),
            ],
        )
    )
    return make_section(
        "eyt",
        "EYT-Bench in parts",
        "Accuracies and FICR are shares, drift is a cosine distance (1 − cosine), alignment a rank correlation; "
        "satisfaction and the three dimensions are on 0 to 100. Satisfaction is the anchor between papers. FICR on "
        "Nemotron is a coverage check. At 100 conversations a pool, differences under 0.05 on a dimension's 0–5 (1 "
        "point of 100) or 0.03 in accuracy mean nothing.",
        groups,
        Note("No conversation has been held and judged.", "missing", f"colloquy run --build {build} --from chatseeds"),
        only="eyt",
    )


def _pool_blocks(answer: QueryResult, turns: QueryResult, pool: str) -> Iterator[Block | None]:
    where = "all pools" if pool == ALL else f"pool {pool}"
    if pool == ALL:
        caption = "Main metrics, with 95 % intervals where there are any, all pools."
        yield charts.estimates(caption, answer.records, EYT_PANELS, _order(answer, EYT_COLUMNS))
    else:
        yield _few_conversations(answer)
        yield from _claims(answer)
        yield _board(answer, EYT_COLUMNS, f"EYT-Bench, {where}.", shown=boards.OPEN)
    yield charts.lines(
        f"Unweighted scores by turn, {where}; later turns rest on fewer conversations.",
        turns.where(pool=pool).records,
        "turn",
        DIMENSIONS,
        "0-100",
    )
    scores = turns.where(pool=pool, unit="0-100")
    yield make_filled_table(scores, f"Scores by turn, {where}.", drop=("pool", "unit"), folded=True)


def _sweep(answer: QueryResult) -> Iterator[Block | None]:
    ranks, scores = answer.where(target=None), answer.without(target=None)
    flips = [row for row in ranks.records if row["metric"].endswith("_rank_flips")]
    if flips:
        flipped = sum(1 for row in flips if row["value"])
        pairs = numbers.plural(len(flips), "comparison")
        yield Note(f"There is a strict rank flip in {flipped} of {pairs} of rankings under two weights.")
    if len(ranks):
        yield make_table(
            ranks, "Rankings under two weights: Kendall τ, and flips.", drop=("target", "ci_low"), folded=True
        )
    yield make_filled_table(scores, "Weighted scores under each warm-up weight.", folded=True)


def judges(ask: Ask, build: str) -> Section:
    alone, apart, unscored = ask("scores_by_judge"), ask("judge_differences"), ask("unscored")
    ranked = ask("judge_rankings")
    several = len([judge for judge in alone.values("judge") if judge != "panel"]) > 1
    return make_section(
        "judges",
        "Judges",
        "What each judge alone would say, where two of them differ on the same judgements, and what they left "
        "unscored. An unreadable judgement is no score: never 0.",
        [
            ("Unscored", [make_filled_table(unscored, "Judgements by how they ended.")]),
            (
                "Each judge alone",
                [make_filled_table(alone, "Every metric by judge.", folded=True) if several else None],
            ),
            ("Two judges on the same judgements", [make_filled_table(apart, "Judge a less judge b.", folded=True)]),
            (
                "Order of the targets",
                [make_filled_table(ranked, "Do two judges order the targets alike? n counts targets.", folded=True)],
            ),
        ],
        Note("Nothing has been judged.", "missing", f"colloquy run --build {build} --only judging"),
    )


def agreement(ask: Ask, build: str) -> Section:
    answer = ask("agreement")
    groups: list[tuple[str, Sequence[Block | None]]] = []
    for scope in answer.values("scope"):
        of = answer.where(scope=scope)
        title = SCOPES.get(scope, scope)
        folded = len(of) > LONG or of.values("value") == [None]
        groups.append((title, [make_table(of, "Every statistic by category.", drop=("scope",), folded=folded)]))
    return make_section(
        "agreement",
        "Agreement",
        "n counts what enough raters rated. κ of labels that are nearly all right is low by nature; AC1 and raw "
        "agreement stand beside it.",
        groups,
        Note(
            "There is no agreement yet: it needs reviews and votes, two judges, or ratings by people.",
            "missing",
            f"colloquy run --build {build} --only metrics",
        ),
    )


def faults(ask: Ask, build: str) -> Section:
    answer, failures = ask("faults"), ask("model_failures")
    columns = ("none", "target", "simulator", "partner", "infra")
    cells: dict[str, Record] = {}
    for record in answer.records:
        name = f"{record['benchmark']}, {record['pool']}, {record['target']}"
        cells.setdefault(name, {"cell": name, **dict.fromkeys(columns, 0)})[record["fault"]] = record["simulations"]
    colours = dict(
        zip(columns, (charts.SERIES[0], charts.BAD, charts.SERIES[4], charts.SERIES[3], charts.NEUTRAL), strict=True)
    )
    return make_section(
        "faults",
        "Faults",
        "A fault of infrastructure, simulator or partner voids a simulation. A target's own fault does not: its scores "
        "are 0 by rule, so that failing does not pay.",
        [
            (
                "Simulations",
                [
                    charts.shares("How simulations ended.", list(cells.values()), "cell", colours, "simulations"),
                    make_filled_table(answer, "Simulations by target and fault."),
                ],
            ),
            ("Requests", [make_filled_table(failures, "Requests to models that failed for good.")]),
        ],
        Note("There is no simulation, and no request failed.", "missing", f"colloquy run --build {build}"),
    )


def simulator(ask: Ask, build: str) -> Section:
    answer = ask("simulator_health")
    grid = _pivot(answer)
    return make_section(
        "simulator",
        "Simulator health",
        "Every score of EYT-Bench rests on a simulated user. Rates are over the turns that it wrote.",
        [("", [*grid, make_filled_table(answer, "All health metrics by simulator and pool.", folded=bool(grid))])],
        Note("No conversation has been held.", "missing", f"colloquy run --build {build} --only conversation"),
        only="eyt",
    )


LIKENESS = {
    "length": "words a message",
    "question": "asks something",
    "no_end_mark": "no mark at the end",
    "typing_slip": "a slip of typing",
    "polite": "words of politeness",
    "feeling": "words of feeling",
    "vocabulary": "diversity of words",
    "own_words_again": "own words again",
    "told_at_once": "told in the first message",
    "length_variation": "variation of length",
}


def likeness(ask: Ask, build: str) -> Section:
    answer = ask("user_likeness")
    drop = ("edges", "simulated", "people")
    groups: list[tuple[str, Sequence[Block | None]]] = []
    for simulator_, language, real in dict.fromkeys(
        (record["simulator"], record["language"], record["real"]) for record in answer.records
    ):
        of = answer.where(simulator=simulator_, language=language)
        records = sorted(of.records, key=lambda record: list(LIKENESS).index(record["measure"]))
        figure = charts.histograms(
            f"Users of {simulator_} ({language}) and real ones: {real}.",
            records,
            LIKENESS,
            {"simulated": "simulated", "people": "real"},
        )
        said = [Note(_name_unlikeness(simulator_, real, records))]
        table = make_table(of, "Each measure: means, difference, distance.", drop=drop, folded=True)
        groups.append((f"{simulator_}, {language}", [*said, figure, table]))
    return make_section(
        "likeness",
        "Is the simulated user like a person?",
        "What simulated users write against what real ones do. A simulator that is politer or more regular than "
        "people makes a target look better than it is. Differences are simulated less real, resampled by dialogue; "
        "slips, feeling and politeness are found by word lists, which see the plain cases.",
        groups,
        Note(
            "No simulated conversation could be held against real messages: name some in metrics.real_users.",
            "missing",
            f"colloquy run --build {build} --only metrics",
        ),
        only="eyt",
    )


def _name_unlikeness(simulator_: str, real: str, records: Sequence[Record]) -> str:
    """What a simulator is that people are not, as far as the intervals tell."""
    found = [
        f"{record['says']} ({LIKENESS[record['measure']]}: {numbers.number(record['mean_simulated'], '')} against "
        f"{numbers.number(record['mean_real'], '')})"
        for record in records
        if record["says"]
    ]
    against = f"Against {real}, {simulator_} is not told apart from people by any of these measures."
    said = f"Against {real}, {simulator_} is: {'; '.join(found)}." if found else against
    if "soda" in real:
        said += " The dialogues of SODA were written by a model: name messages of people in metrics.real_users."
    return said


def guards(ask: Ask, build: str) -> Section:
    answer = ask("guards")
    return make_section(
        "guards",
        "Words that no person says",
        "Stage directions, names in the text, another language, the prompt's own words, refusals, a model speaking of "
        "itself, repeats and empty turns. Of written dialogues and of the simulator's turns they are mended or asked "
        "for again, and counted here all the same; what targets say stays as it is and is scored so.",
        [
            ("All guards", [make_filled_table(answer.where(guard="any"), "Texts at which any guard fired.")]),
            ("Each guard", [make_filled_table(answer.without(guard="any"), "Texts by guard.", folded=True)]),
        ],
        Note("Nothing has been written or said.", "missing", f"colloquy run --build {build}"),
    )


HEALTH = tuple(metric for metric in METRICS if metric.startswith("simulator_"))


def _pivot(answer: QueryResult) -> list[Block | None]:
    """The health metrics as a board with a row for each simulator and pool."""
    rows = [
        {**record, "n_unscored": 0, "row": f"{record['simulator']}, {name_pool(record['pool']).lower()}"}
        for record in answer.records
    ]
    return [_board(_unmarked(answer, "row", rows), HEALTH, "How the simulator behaved.", of="simulator")]


def _unmarked(answer: QueryResult, rows_are: str, records: Sequence[Record] | None = None) -> QueryResult:
    """An answer (or other records of it) as `read_board` takes one, whose rows are named by a column and are not
    compared with one another."""
    wanted = (
        *("metric", "value", "ci_low", "ci_high", "n", "n_unit", "n_unscored", "n_fault", "units", "units_void"),
        "unit",
    )
    columns = tuple(name for name in wanted if name in answer.columns or name == "n_unscored")
    marks = ("is_best", "may_equal_best", "is_not_compared")
    rows = tuple(
        (record[rows_are], *(record[name] for name in columns), *(None for _ in marks))
        for record in (answer.records if records is None else records)
    )
    return QueryResult(answer.name, answer.sql, ("target", *columns, *marks), rows)


def _legend(drawn: Sequence[BoardBlock], answer: QueryResult) -> Note:
    said = [boards.explain_marks(drawn), boards.explain_tests(answer.records)]
    if len({record["pool"] for record in answer.records if "pool" in record} & {ALL}):
        said.append("A score of all pools is the plain mean of the pools' own.")
    return Note(" ".join(filter(None, said)))


def _claims(answer: QueryResult) -> Iterator[Note]:
    for said in boards.warn_of_claims(answer.records):
        yield Note(said, "warning")


def _few_conversations(answer: QueryResult) -> Note | None:
    return _warning(boards.fewest_conversations(answer.records, (*EYT_OBJECTIVE, *EYT_SUBJECTIVE)))


def _few_dialogues(answer: QueryResult, ask: Ask, language: str | None = None) -> Note | None:
    holds = ask("benchmark_contents")
    of = holds if language is None else holds.where(language=language)
    return _warning(boards.fewest_dialogues(answer.records, of.records))


def _warning(fewest: int | None) -> Note | None:
    said = boards.warn_of_few(fewest)
    return Note(said, "warning") if said else None
