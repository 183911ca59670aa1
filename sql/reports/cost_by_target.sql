-- what does it cost to score a target? one row per target: its own calls, and those of simulator, partner and judges on
-- it. Calls that the cache answered cost nothing here; null: a price is unknown
with

llm_calls as (

    select * from llm_calls
    where stage in ('awareness', 'interaction', 'conversation', 'judging')

),

conversations as (

    select * from conversations

),

interactions as (

    select * from interactions

),

located as (

    select
        llm_calls.*,
        case
            when llm_calls.stage in ('awareness', 'conversation') then split_part(llm_calls.row_key, chr(47), 2)
            when starts_with(llm_calls.row_key, 'awareness') then split_part(llm_calls.row_key, chr(47), 3)
            when llm_calls.stage = 'interaction' then played.target
            when starts_with(llm_calls.row_key, 'interaction') then judged.target
            else conversations.target
        end as target,
    from llm_calls
    left join interactions as played on llm_calls.row_key = played.interaction_id
    left join interactions as judged on split_part(llm_calls.row_key, chr(47), 2) = judged.interaction_id
    left join conversations on split_part(llm_calls.row_key, chr(47), 2) = conversations.conversation_id

),

named as (

    select
        *,
        case
            when stage = 'judging' then 'judging'
            when alias = target then 'target'
            else 'other side'
        end as side,
    from located
    where target is not null and not from_cache

),

costs as (

    select
        target,
        count(*) filter (where side = 'target') as target_requests,
        sum(prompt_tokens) filter (where side = 'target') as target_prompt_tokens,
        sum(completion_tokens) filter (where side = 'target') as target_completion_tokens,
        if(
            count(*) filter (where side = 'target' and finish_reason is not null and cost_usd is null) > 0,
            null,
            coalesce(sum(cost_usd) filter (where side = 'target'), 0)
        ) as target_cost_usd,
        count(*) filter (where side <> 'target') as other_requests,
        if(
            count(*) filter (where side = 'other side' and finish_reason is not null and cost_usd is null) > 0,
            null,
            coalesce(sum(cost_usd) filter (where side = 'other side'), 0)
        ) as simulator_or_partner_cost_usd,
        if(
            count(*) filter (where side = 'judging' and finish_reason is not null and cost_usd is null) > 0,
            null,
            coalesce(sum(cost_usd) filter (where side = 'judging'), 0)
        ) as judging_cost_usd,
    from named
    group by target

),

totals as (

    select
        *,
        target_cost_usd + simulator_or_partner_cost_usd + judging_cost_usd as cost_usd,
    from costs
    order by target

)

select * from totals
