-- one row per request that a stage run cites
select
    build,
    request_id,
    prompt,
    reply,
from parts
