-- what did the judges leave unscored? one row per table of judgements, judge, way of scoring and kind of failure
with

judgements as (

    select
        'awareness_scores' as judgements,
        judge,
        scored_by,
        unscored_kind,
    from awareness_scores
    union all
    select
        'interaction_scores' as judgements,
        judge,
        scored_by,
        unscored_kind,
    from interaction_scores
    union all
    select
        'turn_judgements' as judgements,
        judge,
        scored_by,
        unscored_kind,
    from turn_judgements
    union all
    select
        'final_intent_judgements' as judgements,
        judge,
        scored_by,
        unscored_kind,
    from final_intent_judgements

),

counted as (

    select
        judgements,
        judge,
        scored_by,
        coalesce(unscored_kind, 'scored') as ended,
        count(*) as times,
    from judgements
    group by judgements, judge, scored_by, unscored_kind

),

shares as (

    select
        *,
        round(100.0 * times / sum(times) over (partition by judgements, judge), 1) as percent,
    from counted
    order by judgements asc, judge asc, times desc, ended asc

)

select * from shares
