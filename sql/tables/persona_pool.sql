-- one row per sampled persona
select
    build,
    pool,
    rank,
    persona_id,
    stratum,
    quota,
from parts
