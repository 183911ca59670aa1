-- one row per dialogue whose turn count is not the number of its utterances
with

dialogues as (

    select * from dialogues

),

utterances as (

    select * from utterances

),

counted as (

    select
        dialogue_id,
        count(*) as utterances,
    from utterances
    group by dialogue_id

),

miscounted as (

    select
        dialogues.dialogue_id,
        dialogues.turn_count,
        counted.utterances,
    from dialogues
    left join counted on dialogues.dialogue_id = counted.dialogue_id
    where counted.utterances is distinct from dialogues.turn_count

)

select * from miscounted
