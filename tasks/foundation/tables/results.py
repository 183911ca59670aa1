"""Rows of the metrics stage. Null in a key column of `metrics` means: all of them together."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tasks.foundation.tables.types import Float64, Int32, Json, Row


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
    value: Float64 | None = Field(description="null: not computable")
    n: Int32 = Field(description="units the value rests on", ge=0)
    n_unit: Literal["turn", "conversation", "item", "score", "dialogue"] = Field(description="what n counts")
    n_unscored: Int32 = Field(description="units without a readable score", ge=0)
    n_fault: Int32 = Field(description="units void by a fault; a conversation that left no turn is one turn", ge=0)
    ci_low: Float64 | None = Field(description="lower end of the 95 % interval; null: not computable")
    ci_high: Float64 | None = Field(description="upper end of the 95 % interval; null: not computable")
    unit: str = Field(description="0-10, 0-100, share, cosine, rho …")


ComparisonKind = Literal["best", "judges", "thinking", "pools"]


class Comparison(Row):
    kind: ComparisonKind = Field(
        description="what is compared: best, the best target with another; judges, two judges of one target; thinking, "
        "a model that thinks with the same one that does not; pools, one target on two persona pools"
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
    p_holm: Float64 | None = Field(description="p after Holm's correction; null: not computable")
    n: Int32 = Field(description="dialogues that both sides have; of pools: of both sides together", ge=0)


class Agreement(Row):
    scope: Literal["annotators", "voters", "judges", "human", "judge_human"] = Field(description="who agrees")
    category: str = Field(description="element category or dimension")
    statistic: str = Field(description="raw, cohen_kappa, fleiss_kappa, krippendorff_alpha …")
    raters: str = Field(description="the raters, joined by ' × '")
    value: Float64 | None = Field(description="null: not computable")
    ci_low: Float64 | None = Field(description="lower end of the 95 % interval; null: not computable")
    ci_high: Float64 | None = Field(description="upper end of the 95 % interval; null: not computable")
    n: Int32 = Field(description="units rated by enough raters", ge=0)


class Model(Row):
    alias: str = Field(description="alias in configs/models.yaml")
    family: str = Field(description="model family, for the family rule")
    access: Literal["open", "closed"] = Field(description="open weights or not")
    provider: str = Field(description="a kind of provider, as in configs/models.yaml")
    name: str = Field(description="the provider's name of the model")
    thinking: bool = Field(description="thinking is switched on")
    thinking_pair: str | None = Field(description="alias of the same model with the other switch; null: none")
