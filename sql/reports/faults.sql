-- whose fault ended a simulation? one row per benchmark, target, pool and fault; infra: lost, no row is left of it
with

interactions as (

    select * from interactions

),

conversations as (

    select * from conversations

),

stage_runs as (

    select * from stage_runs

),

samples as (

    select
        'interaction' as stage,
        sample,
    from interactions
    union
    select
        'conversation' as stage,
        sample,
    from conversations
    union
    select
        unnest(['interaction', 'conversation']) as stage,
        0 as sample,

),

made as (

    select
        'interaction' as stage,
        target,
    from interactions
    union
    select
        'conversation' as stage,
        target,
    from conversations

),

lost_targets as (

    select
        stage_runs.stage,
        stage_runs.member as target,
        samples.sample,
    from stage_runs
    inner join samples on stage_runs.stage = samples.stage
    left join made
        on
            stage_runs.stage = made.stage
            and stage_runs.member = made.target
    where made.target is null

),

sides as (

    select
        target,
        partner,
        sample,
    from interactions
    union
    select
        target,
        null as partner,
        sample,
    from lost_targets
    where stage = 'interaction'

),

conditions as (

    select
        target,
        simulator,
        persona_to_target,
        protocol,
        sample,
    from conversations
    union
    select
        target,
        null as simulator,
        null as persona_to_target,
        null as protocol,
        sample,
    from lost_targets
    where stage = 'conversation'

),

lost_interactions as (

    select sides.target
    from interaction_episodes
    cross join sides
    left join interactions
        on
            interaction_episodes.episode_id = interactions.episode_id
            and sides.target = interactions.target
            and sides.partner = interactions.partner
            and sides.sample = interactions.sample
    where interactions.interaction_id is null

),

lost_conversations as (

    select
        chat_seeds.pool,
        conditions.target,
    from chat_seeds
    cross join conditions
    left join conversations
        on
            chat_seeds.chat_seed_id = conversations.chat_seed_id
            and conditions.target = conversations.target
            and conditions.simulator = conversations.simulator
            and conditions.persona_to_target = conversations.persona_to_target
            and conditions.protocol is not distinct from conversations.protocol
            and conditions.sample = conversations.sample
    where
        chat_seeds.error is null
        and conversations.conversation_id is null

),

simulations as (

    select
        'demo' as benchmark,
        'all' as pool,
        target,
        fault,
    from interactions
    union all
    select
        'demo' as benchmark,
        'all' as pool,
        target,
        'infra' as fault,
    from lost_interactions
    union all
    select
        'eyt' as benchmark,
        pool,
        target,
        fault,
    from conversations
    union all
    select
        'eyt' as benchmark,
        pool,
        target,
        'infra' as fault,
    from lost_conversations

),

counted as (

    select
        benchmark,
        pool,
        target,
        fault,
        count(*) as simulations,
    from simulations
    group by benchmark, pool, target, fault

),

shares as (

    select
        benchmark,
        pool,
        target,
        fault,
        simulations,
        round(100.0 * simulations / sum(simulations) over (partition by benchmark, pool, target), 1) as percent,
        case fault
            when 'none' then 'scored'
            when 'target' then 'scored: failing does not pay'
            else 'void: in no denominator'
        end as counts_as,
    from counted
    order by benchmark asc, pool asc, target asc, simulations desc, fault asc

)

select * from shares
