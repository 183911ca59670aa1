-- one row per item, target and sample
select
    build,
    item_id,
    target,
    sample,
    prediction,
    raw,
from parts
