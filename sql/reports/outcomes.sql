-- how did the votes end? one row per language and category of labels
with

dialogues as (

    select
        dialogue_id,
        language,
    from dialogues

),

verdicts as (

    select
        dialogues.language,
        split_part(verdicts.element, '.', 1) as category,
        verdicts.outcome,
        verdicts.panel,
        verdicts.changed,
        verdicts.pending,
    from verdicts
    inner join dialogues on verdicts.dialogue_id = dialogues.dialogue_id

),

counted as (

    select
        language,
        category,
        count(*) as labels,
        count(*) filter (where outcome = 'unanimous' and panel is null) as kept_by_all,
        count(*) filter (where outcome = 'unanimous' and panel is not null) as unanimous,
        count(*) filter (where outcome = 'majority') as majority,
        count(*) filter (where outcome = 'manual') as manual,
        count(*) filter (where outcome = 'rejected') as rejected,
        count(*) filter (where changed) as changed,
        count(*) filter (where pending) as pending,
    from verdicts
    group by language, category
    order by language, category

)

select * from counted
