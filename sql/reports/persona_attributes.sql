-- who is in each pool? one row per pool, attribute and value: personas there and drawn, as in EYT-Bench table 10
with

drawn as (

    select
        pool,
        persona_id,
    from persona_pool

),

personas as (

    select
        persona_candidates.*,
        drawn.persona_id is not null as is_drawn,
    from persona_candidates
    left join drawn
        on
            persona_candidates.pool = drawn.pool
            and persona_candidates.persona_id = drawn.persona_id

),

attributes as (

    select
        pool,
        'age_bucket' as attribute,
        age_bucket as found,
        is_drawn,
    from personas
    union all
    select
        pool,
        'sex' as attribute,
        sex as found,
        is_drawn,
    from personas
    union all
    select
        pool,
        'occupation_group' as attribute,
        occupation_group as found,
        is_drawn,
    from personas
    union all
    select
        pool,
        'interaction_length' as attribute,
        interaction_length_bucket as found,
        is_drawn,
    from personas
    union all
    select
        pool,
        'first_topic' as attribute,
        topic_tags[1] as found,
        is_drawn,
    from personas

),

counted as (

    select
        pool,
        attribute,
        found,
        count(*) as source_personas,
        count(*) filter (where is_drawn) as drawn,
    from attributes
    where found is not null
    group by pool, attribute, found

),

shares as (

    select
        pool,
        attribute,
        found,
        source_personas,
        drawn,
        sum(source_personas) over (partition by pool, attribute) as n_source,
        sum(drawn) over (partition by pool, attribute) as n_drawn,
        round(100.0 * source_personas / sum(source_personas) over (partition by pool, attribute), 1) as source_percent,
        round(100.0 * drawn / nullif(sum(drawn) over (partition by pool, attribute), 0), 1) as drawn_percent,
    from counted
    order by pool asc, attribute asc, source_personas desc, found asc

)

select * from shares
