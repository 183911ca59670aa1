-- how long are the personas? one row per pool and part of it (source, drawn), in word pieces; MiniLM reads 254
with

drawn as (

    select
        persona_candidates.pool,
        'drawn' as part,
        persona_candidates.token_count,
    from persona_pool
    inner join persona_candidates
        on
            persona_pool.pool = persona_candidates.pool
            and persona_pool.persona_id = persona_candidates.persona_id

),

source as (

    select
        pool,
        'source' as part,
        token_count,
    from persona_candidates

),

personas as (

    select * from source
    union all
    select * from drawn

),

lengths as (

    select
        pool,
        part,
        count(*) as personas,
        round(avg(token_count), 1) as mean_tokens,
        min(token_count) as min_tokens,
        quantile_disc(token_count, 0.25) as p25_tokens,
        quantile_disc(token_count, 0.5) as median_tokens,
        quantile_disc(token_count, 0.75) as p75_tokens,
        max(token_count) as max_tokens,
        round(100.0 * count(*) filter (where token_count > 254) / count(*), 1) as beyond_minilm_percent,
    from personas
    group by pool, part
    order by pool asc, part desc

)

select * from lengths
