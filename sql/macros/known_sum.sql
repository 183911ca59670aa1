-- the sum of what is counted; null where a counted part that should be known is not, 0 where nothing is counted
create macro known_sum(part, is_counted, should_be_known) as
if(
    count(*) filter (is_counted and should_be_known and part is null) > 0,
    null,
    coalesce(sum(part) filter (is_counted), 0)
)
