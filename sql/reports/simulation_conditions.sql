-- were all targets simulated alike? one row per simulator, what the target is told and protocol: who, and how often
with

conversations as (

    select * from conversations

),

conditions as (

    select
        simulator,
        persona_to_target,
        protocol,
        string_agg(distinct target, ', ' order by target) as targets,
        count(*) as conversations,
    from conversations
    group by simulator, persona_to_target, protocol
    order by simulator, persona_to_target, protocol

)

select * from conditions
