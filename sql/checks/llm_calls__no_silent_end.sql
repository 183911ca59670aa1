-- one row per request that has neither an answer nor an error
with

llm_calls as (

    select * from llm_calls

),

silent as (

    select
        stage,
        row_key,
        purpose,
        alias,
        attempts,
        from_cache,
    from llm_calls
    where
        (error_kind is null and finish_reason is null)
        or (not from_cache and attempts = 0)

)

select * from silent
