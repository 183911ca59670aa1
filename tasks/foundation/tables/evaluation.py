"""Rows of the evaluation stages: predictions, simulations, judgements, human ratings, and what metrics makes of them.

`sample` (0 unless repeats are asked for) is part of every prediction's and simulation's key. Null in a key column of
`metrics` means: all of them together.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from tasks.foundation.tables.dialogues import Speaker, TurnIndex
from tasks.foundation.tables.types import Float32, Float64, Int32, Json, Language, Row, Score10, Table

SubScore = Annotated[Float32, Field(ge=0, le=1)]
ScoredBy = Literal["judge", "rule"]
Sample = Annotated[Int32, Field(ge=0)]


class AwarenessPrediction(Row):
    item_id: str = Field(description="the item")
    target: str = Field(description="alias of the model under test")
    sample: Sample = Field(description="repeat, 0-based")
    prediction: Json | None = Field(
        description="the labels predicted, fixed ones in the item's language; null: unreadable"
    )
    raw: str = Field(description="the reply as it came")


class AwarenessScore(Row):
    item_id: str = Field(description="the item")
    target: str = Field(description="alias of the model under test")
    sample: Sample = Field(description="repeat, 0-based")
    judge: str = Field(description="alias of the judge")
    accuracy: Score10 | None = Field(description="agreement with the gold labels, 10 best; null: unscored")
    hallucination: Score10 | None = Field(description="freedom from invented content, 10 best; null: unscored")
    accuracy_reason: str | None = Field(description="why; null: unscored or by rule")
    hallucination_reason: str | None = Field(description="why; null: unscored or by rule")
    unscored_kind: str | None = Field(description="why there is no score; null: scored")
    scored_by: ScoredBy = Field(description="a judge, or a rule (an empty prediction scores 0/0)")


class Interaction(Row):
    interaction_id: str = Field(description="content id over episode, target, partner and sample")
    episode_id: str = Field(description="the episode played")
    target: str = Field(description="alias of the model under test")
    partner: str = Field(description="alias of the other side; the target itself in self-play")
    sample: Sample = Field(description="repeat, 0-based")
    turn_count: Int32 = Field(description="number of utterances", ge=0)
    stop_reason: Literal["ended", "max_turns", "fault"] = Field(description="why it stops")
    fault: Literal["none", "infra", "partner", "target"] = Field(description="whose fault, if any")


class InteractionTurn(Row):
    interaction_id: str = Field(description="the interaction")
    turn_index: TurnIndex = Field(description="1-based turn")
    speaker: Speaker = Field(description="participant 1 or 2")
    text: str = Field(description="what is said")
    guards: list[str] = Field(
        description="what is wrong with what the model wrote (stage_direction, name_prefix, wrong_language, repeat …); "
        "counted, not mended; may be empty"
    )


class InteractionScore(Row):
    interaction_id: str = Field(description="the interaction")
    judge: str = Field(description="alias of the judge")
    goal_achievement: Score10 | None = Field(description="10 best; null: unscored")
    believability: Score10 | None = Field(description="10 best; null: unscored")
    skillfulness: Score10 | None = Field(description="10 best; null: unscored")
    realistic: Score10 | None = Field(description="10 best; null: unscored")
    reasons: Json | None = Field(description="reason per dimension; null: unscored or by rule")
    unscored_kind: str | None = Field(description="why there is no score; null: scored")
    scored_by: ScoredBy = Field(description="a judge, or a rule")


class ChatSeed(Row):
    chat_seed_id: str = Field(description="content id over the persona")
    pool: str = Field(description="persona pool")
    rank: Int32 = Field(description="rank of the persona in its pool", ge=0)
    persona_id: str = Field(description="the persona")
    language: Language = Field(description="language of the conversation")
    topic: str | None = Field(description="topic; null: error")
    initial_emotion: str | None = Field(description="emotion of the first turn; null: error")
    initial_explicit_intent: str | None = Field(description="explicit intent of the first turn; null: error")
    initial_latent_intent: str | None = Field(description="latent intent of the first turn; null: error")
    final_intent: str | None = Field(description="what the user wants in the end; null: error")
    first_query: str | None = Field(description="the first user turn; null: error")
    error: str | None = Field(description="why the seed is unusable; null: fine")


class Conversation(Row):
    conversation_id: str = Field(description="content id over seed, target, simulator, sample and setting")
    chat_seed_id: str = Field(description="the seed")
    pool: str = Field(description="persona pool")
    target: str = Field(description="alias of the model under test")
    simulator: str = Field(description="alias of the user simulator")
    sample: Sample = Field(description="repeat, 0-based")
    persona_to_target: Literal["none", "perception", "both"] = Field(description="what the target is told")
    protocol: str = Field(description="turns at most, stop rule, version of the simulator's prompt")
    t_actual: Int32 = Field(description="answered turns", ge=0)
    stop_reason: Literal["achieved", "max_turns", "fault"] = Field(description="why it stops")
    fault: Literal["none", "infra", "simulator", "target"] = Field(description="whose fault, if any")
    final_user_text: str | None = Field(description="the last, unanswered user turn; null: none")
    final_progress: str | None = Field(description="progress label of that turn; null: none")
    final_label_reasks: Int32 = Field(description="re-asks for its labels, or for those of the turn given up", ge=0)
    final_role_breaks: Int32 = Field(description="re-asks for it because the simulator left its role", ge=0)
    final_guards: list[str] = Field(description="as conversation_turns.user_guards, of that turn; may be empty")


class ConversationTurn(Row):
    conversation_id: str = Field(description="the conversation")
    turn_index: TurnIndex = Field(description="1-based turn")
    user_text: str = Field(description="the simulator's turn")
    gold_explicit: str = Field(description="the simulator's explicit intent label")
    gold_latent: str = Field(description="the simulator's latent intent label")
    gold_emotion: str = Field(description="the simulator's emotion label")
    progress: Literal["not_started", "in_progress", "achieved"] = Field(description="towards the final intent")
    predicted_explicit: str | None = Field(description="null: unreadable or out of vocabulary")
    predicted_latent: str | None = Field(description="null: unreadable or out of vocabulary")
    predicted_emotion: str | None = Field(description="null: unreadable or out of vocabulary")
    perception_fault: str | None = Field(description="why there is no prediction; null: none")
    assistant_text: str | None = Field(description="the target's answer; null: it gave none")
    label_reasks: Int32 = Field(description="re-asks for the simulator's labels", ge=0)
    role_breaks: Int32 = Field(description="re-asks because the simulator left its role", ge=0)
    user_guards: list[str] = Field(
        description="what was wrong with a text that the simulator wrote for this turn, and was mended or asked for "
        "again; repeat: stands, where nothing better came; may be empty"
    )
    answer_guards: list[str] = Field(
        description="what is wrong with the target's answer; counted, not mended; may be empty"
    )


class TurnDrift(Row):
    conversation_id: str = Field(description="the conversation")
    turn_index: TurnIndex = Field(description="1-based turn")
    drift_latent: Float64 | None = Field(
        description="1 − cosine of gold and predicted latent intent, 1 where it is unreadable; null: prediction lost"
    )
    drift_explicit: Float64 | None = Field(description="the same of the explicit intents; null: prediction lost")
    drift_pair: Float64 | None = Field(description="the same of both intents together; null: prediction lost")
    final_intent_cosine: Float64 | None = Field(
        description="cosine of the predicted latent intent with the final intent; null: no prediction, or no encoder "
        "for its language"
    )


class TurnJudgement(Row):
    conversation_id: str = Field(description="the conversation")
    turn_index: TurnIndex = Field(description="1-based turn")
    judge: str = Field(description="alias of the judge")
    family: str = Field(description="the judge's model family")
    empathy_recognition: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    empathy_attribution: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    empathy_resonance: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    empathy_response: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    empathy_support: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    persona_style: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    persona_value: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    persona_culture: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    persona_memory: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    persona_security: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    anthropomorphic_colloquial: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    anthropomorphic_emotional: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    anthropomorphic_flow: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    anthropomorphic_flexibility: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    anthropomorphic_rhythm: SubScore | None = Field(description="0, 0.5 or 1; null: unscored")
    reasons: Json | None = Field(description="reason per sub-indicator; null: unscored or by rule")
    unscored_kind: str | None = Field(description="why there is no score; null: scored")
    scored_by: ScoredBy = Field(description="a judge, or a rule")


class FinalIntentJudgement(Row):
    conversation_id: str = Field(description="the conversation")
    judge: str = Field(description="alias of the judge")
    family: str = Field(description="the judge's model family")
    completed: bool | None = Field(description="the final intent was met; null: unscored")
    satisfaction: Annotated[Int32, Field(ge=1, le=5)] | None = Field(description="1–5, 5 best; null: unscored")
    reason: str | None = Field(description="why; null: unscored or by rule")
    unscored_kind: str | None = Field(description="why there is no score; null: scored")
    scored_by: ScoredBy = Field(description="a judge, or a rule")


class JudgementRepeat(Row):
    thing: str = Field(
        description="what was judged twice: awareness/item/target/sample, interaction/id, turn/conversation/turn, "
        "final/conversation"
    )
    judge: str = Field(description="alias of the judge")
    dimension: str = Field(
        description="accuracy, goal_achievement … (0–10), empathy, persona_alignment, anthropomorphic (0–5), "
        "satisfaction (1–5), completed (0, 1)"
    )
    first: Float64 | None = Field(description="the score that counts; null: unscored")
    again: Float64 | None = Field(description="the score of the second draw, which counts nowhere; null: unscored")


class HumanRating(Row):
    conversation_id: str = Field(description="the conversation")
    turn_index: TurnIndex = Field(description="1-based turn")
    annotator: str = Field(description="who rated")
    dimension: str = Field(description="empathy, persona or anthropomorphic")
    score: Annotated[Int32, Field(ge=0, le=5)] = Field(description="0–5, 5 best")
    saw_judge: bool = Field(description="the rater had seen the judge's score")
    created_at: datetime = Field(description="UTC")


class Metric(Row):
    benchmark: Literal["demo", "eyt"] = Field(description="which benchmark")
    pool: str | None = Field(description="persona pool; null: all")
    language: str | None = Field(description="language; null: all")
    target: str | None = Field(description="alias of the model under test; null: all")
    simulator: str | None = Field(description="alias of the simulator; null: all or none")
    judge: str | None = Field(description="alias of the judge; null: the panel")
    partner: str | None = Field(description="alias of the partner; null: all or none")
    goal_type: str | None = Field(description="goal type; null: all")
    slice: Json | None = Field(description="further slicing: α, label, turn, early or late; null: none")
    metric: str = Field(description="name of the metric")
    value: Float64 | None = Field(
        description="of all pools: the plain mean of the pools' values; null: not computable, or not in every pool"
    )
    n: Int32 = Field(description="what the value rests on, in n_unit", ge=0)
    n_unit: Literal["turn", "conversation", "item", "score", "dialogue"] = Field(description="what n counts")
    n_unscored: Int32 = Field(description="units without a readable score", ge=0)
    n_fault: Int32 = Field(description="units void by a fault; a conversation that left no turn is one turn", ge=0)
    ci_low: Float64 | None = Field(description="lower end of the 95 % interval; null: not computable")
    ci_high: Float64 | None = Field(description="upper end of the 95 % interval; null: not computable")
    units: Int32 = Field(
        description="what the metric is about, as a whole, lost ones too: conversations; of demo, predictions and "
        "interactions",
        ge=0,
    )
    units_void: Int32 = Field(description="of these, void by a fault that is not the target's", ge=0)
    worst_low: Float64 | None = Field(
        description="the value if every void unit had the lowest value of the scale; null: 5 % or fewer are void, no "
        "value, or no mean on a scale"
    )
    worst_high: Float64 | None = Field(description="the same with the highest value; null: likewise")
    absent_judges: list[str] = Field(
        description="judges of the panel (or the judge) that judged fewer than half of the units that are not void; "
        "empty: none, or it needs no judge"
    )
    widened: Float64 | None = Field(
        description="by how much the interval is wider because dialogues share characters; null: none share any"
    )
    unit: str = Field(description="0-10, 0-100, share, cosine, rho …")


ComparisonKind = Literal["best", "pairs", "judges", "thinking", "pools"]


class Comparison(Row):
    kind: ComparisonKind = Field(
        description="what is compared: best, the best target with another; pairs, every two targets, on the primary "
        "metrics alone; judges, two judges of one target; thinking, a model that thinks with the same one that does "
        "not; pools, one target on two persona pools"
    )
    benchmark: Literal["demo", "eyt"] = Field(description="which benchmark")
    metric: str = Field(description="name of the metric")
    pool: str | None = Field(description="persona pool (of pools: that of a); null: all")
    pool_b: str | None = Field(description="of pools: that of b; null: the same as a's")
    language: str | None = Field(description="language; null: all")
    target_a: str = Field(description="the target of a")
    target_b: str = Field(description="the target of b")
    judge_a: str | None = Field(description="judge of a; null: the panel")
    judge_b: str | None = Field(description="judge of b; null: the panel")
    difference: Float64 | None = Field(description="a − b; null: not computable")
    ci_low: Float64 | None = Field(description="lower end of the 95 % interval; null: not computable")
    ci_high: Float64 | None = Field(description="upper end of the 95 % interval; null: not computable")
    p: Float64 | None = Field(description="two-sided bootstrap p; null: not computable")
    p_holm: Float64 | None = Field(
        description="p after Holm's correction over the primary metrics of the cell together; null: not computable, or "
        "the metric is descriptive"
    )
    is_primary: bool = Field(description="the metric is one of metrics.primary; all others are descriptive")
    p_holm_least: Float64 | None = Field(
        description="the least that p_holm can be with so many tests and resamples; above 0.05 there are too few "
        "resamples; null: the metric is descriptive"
    )
    n: Int32 = Field(description="dialogues that both sides have; of pools: of both sides together", ge=0)
    is_reversed: bool = Field(
        description="of best: a has the better value, and on what both have done b is the better one"
    )
    judges: list[str] = Field(
        description="where judges of the panel are absent from a target: those that it rests on; empty: it rests on "
        "the whole panel, or needs none"
    )
    is_apart: bool | None = Field(
        description="of pairs: the two are surely not equal, with 95 % confidence over all pairs and primary metrics "
        "of the cell together, as in ranks; null: of another kind"
    )


class Rank(Row):
    benchmark: Literal["demo", "eyt"] = Field(description="which benchmark")
    metric: str = Field(description="name of the metric")
    pool: str | None = Field(description="persona pool; null: all")
    language: str | None = Field(description="language; null: all")
    target: str = Field(description="alias of the model under test")
    rank: Int32 = Field(description="place of its value among the targets under the same conditions, 1 best", ge=1)
    rank_low: Int32 = Field(
        description="best place that the data leave it: 1 + the targets that are surely better", ge=1
    )
    rank_high: Int32 = Field(description="worst place that the data leave it", ge=1)
    may_be_best: bool = Field(
        description="no target is surely better: it belongs to the confidence set of the best; never of a target that "
        "has given nothing at all"
    )
    is_primary: bool = Field(
        description="the metric is one of metrics.primary, whose ranks hold together; that of any other holds by itself"
    )
    n_targets: Int32 = Field(description="targets that it is ranked among", ge=1)
    judges: list[str] = Field(description="as comparisons.judges")


class Agreement(Row):
    scope: Literal["annotators", "voters", "judges", "human", "judge_human", "position", "retest", "variance"] = Field(
        description="who agrees; position: a voter with itself, candidates reversed; retest: a judge with its second "
        "draw; variance: where the differences of scores come from"
    )
    category: str = Field(description="element category or dimension")
    statistic: str = Field(description="raw, cohen_kappa, flips (a share of votes), item_share (of the variance) …")
    raters: str = Field(description="the raters, joined by ' × '")
    value: Float64 | None = Field(description="null: not computable")
    ci_low: Float64 | None = Field(description="lower end of the 95 % interval; null: not computable")
    ci_high: Float64 | None = Field(description="upper end of the 95 % interval; null: not computable")
    n: Int32 = Field(description="units rated by enough raters", ge=0)


class UserLikeness(Row):
    simulator: str = Field(description="alias of the user simulator")
    language: str = Field(description="language of the conversations")
    real: str = Field(description="whose messages it is held against")
    measure: str = Field(
        description="length, question, no_end_mark, typing_slip, polite, feeling (of a message); vocabulary, "
        "own_words_again, told_at_once, length_variation (of a user's side of a dialogue)"
    )
    unit: str = Field(description="words (Han characters) or share")
    mean_simulated: Float64 = Field(description="mean of the simulated user, the seed's first message included")
    mean_real: Float64 = Field(description="mean of the real users")
    difference: Float64 = Field(description="simulated less real")
    difference_low: Float64 | None = Field(description="lower end of its 95 % interval; null: not computable")
    difference_high: Float64 | None = Field(description="upper end of its 95 % interval; null: not computable")
    distance: Float64 = Field(description="Wasserstein distance of both distributions, in the unit", ge=0)
    distance_low: Float64 | None = Field(description="lower end of its 95 % interval, never below 0; null: likewise")
    distance_high: Float64 | None = Field(description="upper end of its 95 % interval; null: likewise")
    n_simulated: Int32 = Field(description="values of the simulated user: messages, or dialogues", ge=0)
    n_real: Int32 = Field(description="values of the real users", ge=0)
    edges: list[Float64] = Field(description="borders of the bins of both histograms; the last bin has all above, too")
    simulated: list[Float64] = Field(description="share of the simulated user's values in each bin")
    people: list[Float64] = Field(description="share of the real users' values in each bin")


class Model(Row):
    alias: str = Field(description="alias in configs/models.yaml")
    family: str = Field(description="model family, for the family rule")
    access: Literal["open", "closed"] = Field(description="open weights or not")
    provider: str = Field(description="openai, google, embedded or scripted")
    name: str = Field(description="the provider's name of the model")
    thinking: bool = Field(description="thinking is switched on")
    thinking_pair: str | None = Field(description="alias of the same model with the other switch; null: none")


_METRIC_KEY = (
    "benchmark",
    "pool",
    "language",
    "target",
    "simulator",
    "judge",
    "partner",
    "goal_type",
    "slice",
    "metric",
)


TABLES = (
    Table(
        "awareness_predictions",
        AwarenessPrediction,
        ("item_id", "target", "sample"),
        "one row per item, target and sample",
    ),
    Table(
        "awareness_scores",
        AwarenessScore,
        ("item_id", "target", "sample", "judge"),
        "one row per prediction and judge",
    ),
    Table("interactions", Interaction, ("interaction_id",), "one row per episode, target and sample"),
    Table("interaction_turns", InteractionTurn, ("interaction_id", "turn_index"), "one row per utterance"),
    Table(
        "interaction_scores",
        InteractionScore,
        ("interaction_id", "judge"),
        "one row per interaction and judge",
    ),
    Table("chat_seeds", ChatSeed, ("chat_seed_id",), "one row per persona of a pool"),
    Table("conversations", Conversation, ("conversation_id",), "one row per seed, target and sample"),
    Table(
        "conversation_turns",
        ConversationTurn,
        ("conversation_id", "turn_index"),
        "one row per turn",
        beside="turn_drifts",
    ),
    Table("turn_drifts", TurnDrift, ("conversation_id", "turn_index"), "one row per turn, once metrics has run"),
    Table(
        "turn_judgements",
        TurnJudgement,
        ("conversation_id", "turn_index", "judge"),
        "one row per answered turn and judge",
    ),
    Table(
        "final_intent_judgements",
        FinalIntentJudgement,
        ("conversation_id", "judge"),
        "one row per conversation and judge",
    ),
    Table(
        "judgement_repeats",
        JudgementRepeat,
        ("thing", "judge", "dimension"),
        "one row per judgement drawn twice and dimension",
    ),
    Table(
        "human_ratings",
        HumanRating,
        ("conversation_id", "turn_index", "annotator", "dimension"),
        "one row per turn, rater and dimension",
    ),
    Table("metrics", Metric, _METRIC_KEY, "one row per cell and metric"),
    Table(
        "comparisons",
        Comparison,
        ("kind", "benchmark", "metric", "pool", "pool_b", "language", "target_a", "target_b", "judge_a", "judge_b"),
        "one row per pair of targets, judges or pools and metric",
    ),
    Table(
        "ranks",
        Rank,
        ("benchmark", "metric", "pool", "language", "target"),
        "one row per target and metric that has a better end",
    ),
    Table("agreement", Agreement, ("scope", "category", "statistic", "raters"), "one row per statistic"),
    Table(
        "user_likeness",
        UserLikeness,
        ("simulator", "language", "measure"),
        "one row per simulator, language and measure",
    ),
    Table("models", Model, ("alias",), "one row per model alias that the build names"),
)
