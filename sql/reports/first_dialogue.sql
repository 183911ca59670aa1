-- what do the two say to each other? one row per utterance of the first dialogue of each language
with

dialogues as (

    select * from dialogues

),

utterances as (

    select * from utterances

),

firsts as (

    select
        language,
        min(dialogue_id) as dialogue_id,
    from dialogues
    group by language

),

said as (

    select
        dialogues.dialogue_id,
        dialogues.language,
        utterances.turn_index,
        if(utterances.speaker = 1, dialogues.speaker1, dialogues.speaker2) as speaker,
        utterances.text,
    from firsts
    inner join dialogues on firsts.dialogue_id = dialogues.dialogue_id
    inner join utterances on firsts.dialogue_id = utterances.dialogue_id
    order by dialogues.language, utterances.turn_index

)

select * from said
