-- the warm-up weight of a turn of a conversation of so many turns (EYT-Bench, Eq. 4); without an alpha all weigh alike
create macro turn_weight(turn, turns, alpha) as
case
    when alpha is null or turns <= 2 then 1 / turns
    when turn <= 2 then alpha
    else (1 - 2 * alpha) / (turns - 2)
end;

-- the mean of turns' scores of 0 to 5 by their weights, on 0 to 100; null where more than half of them are unscored
create macro weighted_score(score, weight) as
if(
    count(score) > 0 and 2 * count(score) >= count(*),
    20.0 * sum(score * weight) / sum(weight) filter (score is not null),
    null
);

-- the three dimensions of a panel: one row per conversation that is not void, on 0 to 100, each turn with its warm-up
-- weight (without an alpha all weigh alike). Null where more than half of the turns are unscored
create macro weighted(judges, alpha := 0.10, rule := 'majority') as table
    with

    turns as (

        select
            *,
            turn_weight(turn_index, count(*) over (partition by conversation_id), alpha) as weight,
        from panel(judges, rule)

    )

    select
        conversation_id,
        any_value(target) as target,
        any_value(pool) as pool,
        any_value(language) as language,
        weighted_score(empathy, weight) as empathy,
        weighted_score(persona_alignment, weight) as persona_alignment,
        weighted_score(anthropomorphic, weight) as anthropomorphic,
    from turns
    group by conversation_id
