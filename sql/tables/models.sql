-- one row per model alias that the build names
select
    build,
    alias,
    family,
    access,
    provider,
    name,
    thinking,
    thinking_pair,
from parts
