-- one row per label with more than one verdict, or reviewed without any
with

reviews as (

    select distinct
        dialogue_id,
        element,
    from reviews

),

verdicts as (

    select
        dialogue_id,
        element,
        count(*) as verdicts,
    from verdicts
    group by dialogue_id, element

),

not_one as (

    select
        coalesce(verdicts.dialogue_id, reviews.dialogue_id) as dialogue_id,
        coalesce(verdicts.element, reviews.element) as element,
        coalesce(verdicts.verdicts, 0) as verdicts,
    from reviews
    full join verdicts
        on
            reviews.dialogue_id = verdicts.dialogue_id
            and reviews.element = verdicts.element
    where verdicts.verdicts is distinct from 1

)

select * from not_one
