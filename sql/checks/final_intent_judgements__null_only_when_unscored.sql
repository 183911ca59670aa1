-- one row per judgement with a score and a reason why there is none, or with neither
with

final_intent_judgements as (

    select * from final_intent_judgements

),

half_scored as (

    select
        conversation_id,
        judge,
        completed,
        satisfaction,
        unscored_kind,
    from final_intent_judgements
    where
        (completed is null) <> (unscored_kind is not null)
        or (satisfaction is null) <> (unscored_kind is not null)

)

select * from half_scored
