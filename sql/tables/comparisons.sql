-- one row per pair of targets (or judges) and metric
select
    build,
    benchmark,
    metric,
    pool,
    language,
    target_a,
    target_b,
    judge_a,
    judge_b,
    difference,
    ci_low,
    ci_high,
    p,
    p_holm,
    n,
from parts
