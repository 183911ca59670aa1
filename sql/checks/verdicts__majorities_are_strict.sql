-- one row per decided label for which no more than half of the panel voted
with

verdicts as (

    select * from verdicts

),

too_few as (

    select
        dialogue_id,
        element,
        outcome,
        votes_for,
        votes_cast,
        panel,
    from verdicts
    where
        votes_for > votes_cast
        or votes_cast > panel
        or (panel is not null and outcome <> 'manual' and 2 * votes_for <= panel)
        or (panel is not null and outcome = 'unanimous' and votes_for <> panel)

)

select * from too_few
