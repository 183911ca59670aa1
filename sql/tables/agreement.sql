-- one row per statistic
select
    build,
    scope,
    category,
    statistic,
    raters,
    value,
    ci_low,
    ci_high,
    n,
from parts
