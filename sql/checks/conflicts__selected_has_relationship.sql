-- one row per selected pairing that lacks what a dialogue needs to know of the two
with

conflicts as (

    select * from conflicts

),

incomplete as (

    select
        pairing_id,
        relationship,
        familiarity,
        talkway,
    from conflicts
    where selected and (relationship is null or familiarity is null or talkway is null)

)

select * from incomplete
