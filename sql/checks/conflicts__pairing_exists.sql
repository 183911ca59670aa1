-- one row per assessment of a pairing that is not there
with

conflicts as (

    select * from conflicts

),

pairings as (

    select * from pairings

),

orphans as (

    select conflicts.pairing_id,
    from conflicts
    left join pairings on conflicts.pairing_id = pairings.pairing_id
    where pairings.pairing_id is null

)

select * from orphans
