-- one row per way in which the ranks of the selected pairings do not count from 0 without gap or repeat
with

conflicts as (

    select * from conflicts

),

counted as (

    select
        count(*) filter (where selected) as selected_pairings,
        count(distinct selection_rank) as ranks,
        max(selection_rank) as highest,
        count(*) filter (where selected <> (selection_rank is not null)) as misplaced,
    from conflicts

),

gaps as (

    select * from counted
    where misplaced > 0 or ranks <> selected_pairings or highest <> selected_pairings - 1

)

select * from gaps
