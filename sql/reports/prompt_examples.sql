-- what was really sent, and what came back? one row per example: three of each stage and purpose, other languages first
with

llm_calls as (

    select * from llm_calls

),

replies as not materialized (

    select * from replies

),

scripts as (

    select
        request_id,
        regexp_matches(prompt, '[一-龥]') as has_han,
    from replies

),

-- The texts, which are long, are joined to the few that are chosen.
numbered as (

    select
        llm_calls.stage,
        llm_calls.purpose,
        llm_calls.request_id,
        scripts.has_han,
        row_number() over (
            partition by llm_calls.stage, llm_calls.purpose, scripts.has_han
            order by hash(llm_calls.request_id), llm_calls.request_id
        ) as place,
    from llm_calls
    inner join scripts on llm_calls.request_id = scripts.request_id

),

chosen as (

    select *
    from numbered
    qualify row_number() over (partition by stage, purpose order by place, has_han, request_id) <= 3

),

examples as (

    select
        chosen.stage,
        chosen.purpose,
        llm_calls.alias,
        llm_calls.row_key,
        llm_calls.attempts,
        llm_calls.error_kind,
        replies.prompt,
        replies.reply,
    from chosen
    inner join llm_calls on chosen.request_id = llm_calls.request_id
    inner join replies on chosen.request_id = replies.request_id
    order by chosen.stage, chosen.purpose, chosen.place, chosen.has_han

)

select * from examples
