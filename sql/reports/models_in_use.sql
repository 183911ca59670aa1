-- which models were asked, and for what? one row per model, stage and purpose
with

llm_calls as (

    select * from llm_calls

),

uses as (

    select
        alias,
        family,
        provider,
        model,
        stage,
        purpose,
        count(*) as requests,
        count(*) filter (where error_kind is not null) as failed,
        min(temperature) as lowest_temperature,
        max(temperature) as highest_temperature,
    from llm_calls
    group by alias, family, provider, model, stage, purpose
    order by alias, stage, purpose

)

select * from uses
