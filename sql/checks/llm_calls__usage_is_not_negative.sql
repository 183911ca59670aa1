-- one row per request with a negative count, cost or time
with

llm_calls as (

    select * from llm_calls

),

negative as (

    select
        stage,
        row_key,
        purpose,
        prompt_tokens,
        cached_tokens,
        cache_write_tokens,
        completion_tokens,
        reasoning_tokens,
        cost_usd,
        latency_seconds,
    from llm_calls
    where
        least(prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens, reasoning_tokens) < 0
        or least(cost_usd, latency_seconds) < 0
        or cached_tokens > prompt_tokens
        or reasoning_tokens > completion_tokens

)

select * from negative
