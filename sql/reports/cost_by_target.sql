-- what does it cost to score a target? one row per target (null: of interactions that were lost): its own calls, and
-- those of simulator, partner and judges on it. What the cache answered costs nothing; null: not reported, or no price
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

models as (

    select * from models

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
        not from_cache as is_paid,
        finish_reason is not null as is_answered,
    from located

),

costs as (

    select
        target,
        count(*) filter (where side = 'target' and not from_cache) as target_requests,
        known_sum(prompt_tokens, side = 'target' and is_paid, is_answered) as target_prompt_tokens,
        known_sum(completion_tokens, side = 'target' and is_paid, is_answered) as target_completion_tokens,
        known_sum(cost_usd, side = 'target' and is_paid, is_answered) as target_cost_usd,
        count(*) filter (where side <> 'target' and not from_cache) as other_requests,
        known_sum(cost_usd, side = 'other side' and is_paid, is_answered) as simulator_or_partner_cost_usd,
        known_sum(cost_usd, side = 'judging' and is_paid, is_answered) as judging_cost_usd,
    from named
    group by target

),

totals as (

    select
        costs.*,
        costs.target_cost_usd + costs.simulator_or_partner_cost_usd + costs.judging_cost_usd as cost_usd,
        models.family,
        models.access,
        models.thinking,
    from costs
    left join models on costs.target = models.alias
    order by costs.target

)

select * from totals
