-- what was really sent, and what came back? one row per example: three of each stage and purpose, other languages first
with

llm_calls as (

    select * from llm_calls

),

replies as (

    select * from replies

),

asked as (

    select
        llm_calls.stage,
        llm_calls.purpose,
        llm_calls.alias,
        llm_calls.row_key,
        llm_calls.attempts,
        llm_calls.error_kind,
        replies.prompt,
        replies.reply,
        llm_calls.request_id,
        regexp_matches(replies.prompt, '[一-龥]') as has_han,
    from llm_calls
    inner join replies on llm_calls.request_id = replies.request_id

),

numbered as (

    select
        *,
        row_number() over (partition by stage, purpose, has_han order by hash(request_id), request_id) as place,
    from asked

),

examples as (

    select
        stage,
        purpose,
        alias,
        row_key,
        attempts,
        error_kind,
        prompt,
        reply,
    from numbered
    qualify row_number() over (partition by stage, purpose order by place, has_han, request_id) <= 3
    order by stage, purpose, place, has_han

)

select * from examples
