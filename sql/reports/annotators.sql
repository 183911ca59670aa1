-- how does each annotator review? one row per annotator and category of labels
with

reviews as (

    select
        annotator,
        family,
        split_part(element, '.', 1) as category,
        action,
    from reviews

),

counted as (

    select
        annotator,
        family,
        category,
        count(*) as reviewed,
        count(*) filter (where action = 'keep') as kept,
        count(*) filter (where action = 'edit') as edited,
        count(*) filter (where action = 'reject') as rejected,
        count(*) filter (where action is null) as unreadable,
    from reviews
    group by annotator, family, category

),

shares as (

    select
        *,
        round(100.0 * kept / reviewed, 1) as kept_percent,
    from counted
    order by annotator, category

)

select * from shares
