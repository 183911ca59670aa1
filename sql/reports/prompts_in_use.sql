-- how does each prompt fare? one row per stage, purpose and model; a request was asked again when a reply could not be
-- read or a call failed in passing; texts far over their limit were cut. What the reply cache answered counts as it did
-- when it was paid for
with

llm_calls as (

    select * from llm_calls

),

prompts as (

    select
        stage,
        purpose,
        alias,
        count(*) as requests,
        count(*) filter (where attempts > 1) as asked_again,
        round(100.0 * count(*) filter (where attempts > 1) / count(*), 1) as percent_asked_again,
        count(*) filter (where error_kind is not null) as failed,
        round(100.0 * count(*) filter (where error_kind is not null) / count(*), 1) as percent_failed,
        count(*) filter (where finish_reason in ('length', 'MAX_TOKENS')) as cut_off,
        cast(sum(cut_texts) as bigint) as texts_cut,
        cast(round(median(prompt_tokens * 1.0 / greatest(attempts, 1))) as bigint) as prompt_tokens_median,
        cast(round(median(completion_tokens * 1.0 / greatest(attempts, 1))) as bigint) as completion_tokens_median,
        cast(
            round(quantile_cont(completion_tokens * 1.0 / greatest(attempts, 1), 0.95)) as bigint
        ) as completion_tokens_95th,
        round(median(latency_seconds), 1) as seconds_median,
    from llm_calls
    group by stage, purpose, alias
    order by stage, purpose, alias

)

select * from prompts
