-- one row per dropped duplicate
select
    build,
    table_name,
    row_id,
    duplicate_of,
    cosine,
    method,
from parts
