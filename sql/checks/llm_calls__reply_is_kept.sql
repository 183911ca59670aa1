-- one row per answered request whose reply is not kept
with

llm_calls as (

    select * from llm_calls

),

replies as (

    select * from replies
    where reply is not null

),

lost as (

    select
        llm_calls.stage,
        llm_calls.row_key,
        llm_calls.purpose,
        llm_calls.request_id,
    from llm_calls
    anti join replies on llm_calls.request_id = replies.request_id
    where llm_calls.error_kind is null

)

select * from lost
