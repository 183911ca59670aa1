-- one row per input row that a stage could not use
select
    build,
    stage,
    row_key,
    kind,
    reason,
    retryable,
    attempts,
    payload,
from parts
