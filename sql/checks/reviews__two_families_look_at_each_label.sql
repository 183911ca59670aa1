-- one row per label that models of fewer than two families reviewed
with

reviews as (

    select * from reviews

),

counted as (

    select
        dialogue_id,
        element,
        count(distinct family) as families,
    from reviews
    group by dialogue_id, element

),

one_sided as (

    select * from counted
    where families < 2

)

select * from one_sided
