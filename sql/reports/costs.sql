-- what did each stage cost? one row per stage and model; tokens are null where some were not reported, cost where a
-- price is unknown
with

llm_calls as (

    select * from llm_calls

),

costs as (

    select
        stage,
        alias,
        count(*) as requests,
        coalesce(sum(attempts) filter (where not from_cache), 0) as calls,
        count(*) filter (where from_cache) as from_cache,
        count(*) filter (where error_kind is not null) as failed,
        known_sum(prompt_tokens, not from_cache, finish_reason is not null) as prompt_tokens,
        sum(cached_tokens) filter (where not from_cache) as cached_tokens,
        known_sum(completion_tokens, not from_cache, finish_reason is not null) as completion_tokens,
        known_sum(cost_usd, not from_cache, finish_reason is not null) as cost_usd,
        round(sum(latency_seconds) filter (where not from_cache), 1) as seconds_in_calls,
    from llm_calls
    group by stage, alias
    order by stage, alias

)

select * from costs
