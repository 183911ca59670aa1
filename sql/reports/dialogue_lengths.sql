-- are dialogues as long as they were asked for? one row per language: utterances asked for and written
with

asked as (

    select
        language,
        turn_count,
        target_turns,
    from dialogues
    where target_turns is not null

),

measured as (

    select
        language,
        count(*) as n,
        avg(target_turns) as asked_mean,
        stddev_samp(target_turns) as asked_sd,
        avg(turn_count) as got_mean,
        stddev_samp(turn_count) as got_sd,
        max(turn_count) as longest,
        avg(abs(turn_count - target_turns)) as off_by,
    from asked
    group by language
    order by language

)

select * from measured
