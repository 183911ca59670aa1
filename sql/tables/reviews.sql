-- one row per label and annotator
select
    build,
    dialogue_id,
    element,
    annotator,
    family,
    action,
    proposed,
    reason,
from parts
