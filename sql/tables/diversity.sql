-- one row per table, language and statistic
select
    build,
    table_name,
    language,
    statistic,
    value,
    n,
    n_of,
from parts
