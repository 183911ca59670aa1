"""A build of EYT-Bench made up by a seed, as large as a benchmark needs: committed without any model or stage.

Every target talks to every seed, `samples` times, for five to ten turns; the first judge sees all of it, another a
fiftieth. The ledger has a request for each of a turn's three texts and for each judgement. Texts are two sentences of a
bank. What a commit would compute from its rows (content hashes, usage) is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pyarrow as pa

from tasks.foundation.ids import digest
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.store.commits import Commit, write_commit
from tasks.foundation.store.layout import FINGERPRINT_DIGITS, Layout
from tasks.foundation.store.parts import PartFile, write_part
from tasks.foundation.tables import EVERY_STAGE, TABLES, Table
from tasks.metrics.catalogue import SUB_INDICATORS

BUILD = "large"
POOLS = ("nemotron_usa", "personamem_v2")
SIMULATOR, JUDGE, SECOND = "scripted-b", "scripted-a", "scripted-c"
FEWEST_TURNS, MOST_TURNS = 5, 10
BANK = 20_000
PARTS = 8
"""Files of each table of a target."""
NOW = datetime(2026, 12, 1, tzinfo=UTC)
WORDS = [
    *("I", "you", "we", "they", "think", "know", "hope", "mean", "said", "told", "asked", "about", "the", "a", "my"),
    *("your", "work", "dinner", "garden", "train", "letter", "brother", "sister", "doctor", "school", "weather"),
    *("music", "money", "really", "never", "always", "maybe", "today", "tomorrow", "last", "week", "again"),
    *("together", "because", "when", "but", "and", "so", "if", "with", "for", "from", "into", "after", "before"),
    *("good", "late", "tired", "happy", "sure", "sorry", "thanks", "please"),
]
ENDS = np.array([".", ".", "?", "!", ""])


@dataclass(frozen=True)
class Size:
    """How many there are of what a build is made of."""

    targets: int = 17
    seeds: int = 500
    """Chat seeds a pool."""
    samples: int = 7

    @property
    def conversations(self) -> int:
        """Of one target."""
        return len(POOLS) * self.seeds * self.samples


def make_build(layout: Layout, size: Size, seed: int = 1) -> int:
    """Commits the tables of chatseeds, conversation, judging and scenes; returns the number of turns."""
    rng = np.random.default_rng(seed)
    bank = _sentences(rng, BANK, 2, 20)
    seeds = _chat_seeds(rng, size, bank)
    _commit(layout, "chatseeds", None, {"chat_seeds": [seeds]})
    _commit(layout, "scenes", None, dict(zip(("scenes", "seed_dialogues"), _scenes(rng, bank), strict=True)))
    judged: dict[str, list[dict[str, pl.DataFrame]]] = {JUDGE: [], SECOND: []}
    turns_made = 0
    for number in range(size.targets):
        target = f"target-{number:02d}"
        conversations, turns = _conversations(rng, target, number / size.targets, seeds, size, bank)
        turns_made += len(turns)
        tables = {"conversations": conversations, "conversation_turns": turns, **_asked_in(rng, target, turns, bank)}
        _commit(layout, "conversation", target, {name: list(_cut(rows)) for name, rows in tables.items()})
        judged[JUDGE].append(_judgements(rng, JUDGE, conversations, turns, bank))
        few = conversations.gather_every(50)
        judged[SECOND].append(_judgements(rng, SECOND, few, turns.join(few, on="conversation_id", how="semi"), bank))
    for judge, made in judged.items():
        _commit(layout, "judging", judge, {name: [each[name] for each in made] for name in made[0]})
    return turns_made


def _sentences(rng: np.random.Generator, n: int, fewest: int, most: int) -> np.ndarray:
    lengths = rng.integers(fewest, most + 1, n)
    words = iter(np.array(WORDS)[rng.integers(0, len(WORDS), int(lengths.sum()))].tolist())
    ends = ENDS[rng.integers(0, len(ENDS), n)]
    said = (" ".join(next(words) for _ in range(length)) for length in lengths.tolist())
    return np.array([f"{text}{end}" for text, end in zip(said, ends, strict=True)], dtype=object)


def _say(rng: np.random.Generator, bank: np.ndarray, n: int) -> np.ndarray:
    """Texts of two sentences of the bank: hardly any twice."""
    one, other = (bank[rng.integers(0, len(bank), n)] for _ in range(2))
    return np.asarray(one + " " + other)


def _draw(rng: np.random.Generator, values: Sequence[object] | np.ndarray, n: int) -> np.ndarray:
    return np.array(values, dtype=object)[rng.integers(0, len(values), n)]


def _labels(name: str) -> list[str]:
    return [label.name for label in taxonomy(name).labels]


def _chat_seeds(rng: np.random.Generator, size: Size, bank: np.ndarray) -> pl.DataFrame:
    n = len(POOLS) * size.seeds
    rank = np.arange(n) % size.seeds
    pool = np.repeat(np.array(POOLS, dtype=object), size.seeds)
    return pl.DataFrame(
        {
            "chat_seed_id": [f"seed_{number:06d}" for number in range(n)],
            "pool": pool,
            "rank": rank,
            "persona_id": [f"persona_{number:06d}" for number in range(n)],
            "language": "en",
            "topic": _draw(rng, WORDS, n),
            "initial_emotion": _draw(rng, _labels("user_emotion"), n),
            "initial_explicit_intent": _draw(rng, _labels("explicit_intent"), n),
            "initial_latent_intent": _draw(rng, _labels("latent_intent"), n),
            "final_intent": _sentences(rng, n, 8, 16),
            "first_query": _say(rng, bank, n),
            "error": None,
        },
        strict=False,
    )


def _scenes(rng: np.random.Generator, bank: np.ndarray, n: int = 1000) -> Iterator[list[pl.DataFrame]]:
    ids = [f"dialogue_{number:05d}" for number in range(n)]
    words = ("goal1", "goal2", "time", "location", "topic", "atmosphere", "domain")
    texts = {name: _draw(rng, bank, n) for name in words} | {"goal_type": _draw(rng, _labels("goal_type"), n)}
    yield [pl.DataFrame({"scene_id": [f"scene_{each}" for each in ids], "seed_id": ids, "language": "en", **texts})]
    turns = [
        [{"speaker": f"speaker {place % 2}", "text": text} for place, text in enumerate(_draw(rng, bank, 8))]
        for _ in ids
    ]
    of = {"corpus": "soda", "split": "train", "source_index": range(n), "language": "en"}
    about = {"turns": turns, "turn_count": 8, "narrative": None, "licence": "made up"}
    yield [pl.DataFrame({"seed_id": ids, **of, **about})]


def _conversations(
    rng: np.random.Generator, target: str, quality: float, seeds: pl.DataFrame, size: Size, bank: np.ndarray
) -> tuple[pl.DataFrame, pl.DataFrame]:
    n = size.conversations
    place, sample = np.arange(n) // size.samples, np.arange(n) % size.samples
    fault = np.where(rng.random(n) < 0.01, "infra", np.where(rng.random(n) < 0.01, "target", "none"))
    achieved = (rng.random(n) < 0.3) & (fault == "none")
    lengths = np.where(fault == "infra", 3, rng.integers(FEWEST_TURNS, MOST_TURNS + 1, n)).astype(int)
    lengths[~achieved & (fault == "none")] = MOST_TURNS
    ids = np.array([f"conversation_{target}_{number:07d}" for number in range(n)], dtype=object)
    said_last = fault == "none"
    conversations = pl.DataFrame(
        {
            "conversation_id": ids,
            "chat_seed_id": seeds["chat_seed_id"].to_numpy()[place],
            "pool": seeds["pool"].to_numpy()[place],
            "target": target,
            "simulator": SIMULATOR,
            "sample": sample,
            "persona_to_target": "none",
            "protocol": "max_turns=10",
            "t_actual": np.where(fault == "target", lengths - 1, lengths),
            "stop_reason": np.where(fault != "none", "fault", np.where(achieved, "achieved", "max_turns")),
            "fault": fault,
            "final_user_text": np.where(said_last, _say(rng, bank, n), None),
            "final_progress": np.where(said_last, np.where(achieved, "achieved", "in_progress"), None),
            "final_label_reasks": 0,
            "final_role_breaks": rng.integers(0, 20, n) // 19,
            "final_guards": [[]] * n,
        },
        strict=False,
    )
    of = np.repeat(np.arange(n), lengths)
    index = np.concatenate([np.arange(1, length + 1) for length in lengths.tolist()])
    m = len(of)
    labels: dict[str, np.ndarray] = {}
    for name, kind in (("explicit", "explicit_intent"), ("latent", "latent_intent"), ("emotion", "user_emotion")):
        gold = _draw(rng, _labels(kind), m)
        right = rng.random(m) < 0.2 + 0.6 * quality
        guessed = np.where(right, gold, _draw(rng, _labels(kind), m))
        labels |= {f"gold_{name}": gold, f"predicted_{name}": np.where(rng.random(m) < 0.02, None, guessed)}
    failed = (fault[of] == "target") & (index == lengths[of])
    turns = pl.DataFrame(
        {
            "conversation_id": ids[of],
            "turn_index": index,
            "user_text": _say(rng, bank, m),
            **labels,
            "progress": "in_progress",
            "perception_fault": None,
            "assistant_text": np.where(failed, None, _say(rng, bank, m)),
            "label_reasks": rng.integers(0, 30, m) // 29,
            "role_breaks": rng.integers(0, 60, m) // 59,
            "user_guards": [[]] * m,
            "answer_guards": [[]] * m,
        },
        strict=False,
    )
    return conversations, turns


def _judgements(
    rng: np.random.Generator, judge: str, conversations: pl.DataFrame, turns: pl.DataFrame, bank: np.ndarray
) -> dict[str, pl.DataFrame]:
    stand = conversations.filter(~pl.col("fault").is_in(["infra", "simulator"]))
    answered = turns.filter(pl.col("assistant_text").is_not_null()).join(stand, on="conversation_id", how="semi")
    n, m = len(stand), len(answered)
    unreadable = rng.random(m) < 0.01
    scores = {name: np.where(unreadable, np.nan, rng.integers(0, 3, m) / 2) for name in SUB_INDICATORS}
    about = {"judge": judge, "family": "scripted"}
    of_turns = answered.select("conversation_id", "turn_index").with_columns(
        **{name: pl.lit(value) for name, value in about.items()},
        **{name: pl.Series(values, nan_to_null=True) for name, values in scores.items()},
        reasons=pl.when(~pl.Series(unreadable)).then(
            pl.lit('{"empathy_recognition": "It names what the user feels."}')
        ),
        unscored_kind=pl.when(pl.Series(unreadable)).then(pl.lit("schema")),
        scored_by=pl.lit("judge"),
    )
    of_ends = stand.select("conversation_id").with_columns(
        **{name: pl.lit(value) for name, value in about.items()},
        completed=pl.Series(rng.random(n) < 0.5),
        satisfaction=pl.Series(rng.integers(1, 6, n)),
        reason=pl.lit("The user has what was wanted."),
        unscored_kind=pl.lit(None, pl.String),
        scored_by=pl.lit("judge"),
    )
    keys = [
        f"turn/{each}/{turn}/{judge}" for each, turn in answered.select("conversation_id", "turn_index").iter_rows()
    ]
    keys += [f"final/{each}/{judge}" for each in stand["conversation_id"]]
    calls, replies = _ledger(rng, "judging", keys, ["judge"] * len(keys), judge, bank)
    twice = of_turns.drop_nulls(SUB_INDICATORS[0]).gather_every(40)
    thing = pl.concat_str(pl.lit("turn"), "conversation_id", "turn_index", separator="/")
    repeats = twice.select(
        thing.alias("thing"),
        "judge",
        pl.lit("empathy").alias("dimension"),
        pl.sum_horizontal(SUB_INDICATORS[:5]).cast(pl.Float64).alias("first"),
        pl.sum_horizontal(SUB_INDICATORS[1:6]).cast(pl.Float64).alias("again"),
    )
    judged = {"turn_judgements": of_turns, "final_intent_judgements": of_ends, "judgement_repeats": repeats}
    return {**judged, "llm_calls": calls, "replies": replies}


def _asked_in(rng: np.random.Generator, target: str, turns: pl.DataFrame, bank: np.ndarray) -> dict[str, pl.DataFrame]:
    """The requests of a target's conversations: what the user says, what the target perceives and answers."""
    ids, answered = turns["conversation_id"].to_list(), turns["assistant_text"].is_not_null().to_list()
    kept = [each for each, there in zip(ids, answered, strict=True) if there]
    calls = [
        _ledger(rng, "conversation", ids, ["simulate"] * len(ids), SIMULATOR, bank),
        *(
            _ledger(rng, "conversation", kept, [purpose] * len(kept), target, bank)
            for purpose in ("perceive", "answer")
        ),
    ]
    return {"llm_calls": pl.concat([each[0] for each in calls]), "replies": pl.concat([each[1] for each in calls])}


def _ledger(
    rng: np.random.Generator, stage: str, keys: list[str], purposes: list[str], alias: str, bank: np.ndarray
) -> tuple[pl.DataFrame, pl.DataFrame]:
    n = len(keys)
    request = [f"{high:016x}{low:016x}" for high, low in rng.integers(0, 2**62, (n, 2)).tolist()]
    about = {
        "alias": alias,
        "model": alias,
        "family": "scripted",
        "provider": "scripted",
        "base_url": None,
        "prompt_fingerprint": f"{stage}-{purposes[0] if purposes else ''}",
        "temperature": 0.7,
        "seed_sent": None,
        "model_reported": alias,
        "prompt_tokens": rng.integers(400, 1600, n),
        "cached_tokens": 0,
        "cache_write_tokens": None,
        "completion_tokens": rng.integers(20, 200, n),
        "reasoning_tokens": 0,
        "cost_usd": rng.random(n) / 100,
        "latency_seconds": rng.random(n),
        "attempts": 1,
        "from_cache": False,
        "cut_texts": 0,
        "finish_reason": "stop",
        "error_kind": None,
        "created_at": NOW,
    }
    asked = {"request_id": request, "stage": stage, "row_key": keys, "purpose": purposes, "revision": 0}
    prompt = '[{"role": "system", "content": "You are a user of a chat model."}, {"role": "user", "content": "Go on."}]'
    replies = pl.DataFrame({"request_id": request, "prompt": prompt, "reply": _draw(rng, bank, n)})
    return pl.DataFrame({**asked, **about}, strict=False), replies


def _in_schema(rows: pl.DataFrame, table: Table) -> pa.Table:
    """Rows with the table's types; columns that polars took for objects are texts."""
    texts = [pl.Series(each.name, each.to_list(), pl.String) for each in rows if each.dtype == pl.Object]
    return rows.with_columns(texts).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(table.schema)


def _cut(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    yield from rows.iter_slices(max(1, -(-len(rows) // PARTS)))


def _commit(layout: Layout, stage: str, member: str | None, tables: dict[str, list[pl.DataFrame]]) -> None:
    """The rows as if that stage had made them."""
    fingerprint = digest(stage, member)[:FINGERPRINT_DIGITS]
    whole: dict[str, list[pl.DataFrame]] = {**{name: [] for name in EVERY_STAGE}, **tables}
    parts: dict[str, tuple[PartFile, ...]] = {}
    for name, several in whole.items():
        table, made = TABLES[name], []
        for number, rows in enumerate(several):
            label = f"{number:05d}"
            path = layout.part(name, BUILD, fingerprint, label, 0)
            write_part(layout, path, table, _in_schema(rows.select(table.columns), table), {})
            made.append(PartFile(layout.relative(path), len(rows), "0" * 64, label))
        parts[name] = tuple(made)
    produced = max((sum(map(len, each)) for name, each in tables.items() if name not in EVERY_STAGE), default=0)
    commit = Commit(
        build=BUILD,
        stage=stage,
        member=member,
        fingerprint=fingerprint,
        revision=0,
        partial=False,
        tables=parts,
        drafts={},
        accounting=Accounting(produced, produced),
        components={},
        parents={},
        started_at=NOW.isoformat(),
        ended_at=NOW.isoformat(),
        ends_chain=False,
        usage={},
        columns={name: TABLES[name].shape for name in parts},
    )
    write_commit(layout, commit)
