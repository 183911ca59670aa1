-- one row per interaction that stops by a fault and names none, or names one and stops otherwise
with

interactions as (

    select * from interactions

),

disagreeing as (

    select
        interaction_id,
        stop_reason,
        fault,
    from interactions
    where
        (stop_reason = 'fault') <> (fault <> 'none')

)

select * from disagreeing
