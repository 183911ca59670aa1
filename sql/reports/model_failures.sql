-- why did requests fail? one row per stage, purpose, model and kind of failure, most first
with

llm_calls as (

    select * from llm_calls

),

requests as (

    select
        stage,
        purpose,
        alias,
        count(*) as requests,
    from llm_calls
    group by stage, purpose, alias

),

failures as (

    select
        stage,
        purpose,
        alias,
        error_kind,
        count(*) as failed,
        sum(attempts) as calls,
    from llm_calls
    where error_kind is not null
    group by stage, purpose, alias, error_kind

),

rates as (

    select
        failures.stage,
        failures.purpose,
        failures.alias,
        failures.error_kind,
        failures.failed,
        requests.requests,
        round(100.0 * failures.failed / requests.requests, 1) as failed_percent,
        failures.calls,
    from failures
    inner join requests
        on
            failures.stage = requests.stage
            and failures.purpose = requests.purpose
            and failures.alias = requests.alias
    order by failures.failed desc, failures.stage asc, failures.purpose asc

)

select * from rates
