-- do simulated users write as people do? one row per simulator, language and measure; `says` only where the interval of
-- the difference is on one side of 0
with

user_likeness as (

    select * from user_likeness

),

compared as (

    select
        simulator,
        language,
        real,
        measure,
        unit,
        mean_simulated,
        mean_real,
        difference,
        difference_low,
        difference_high,
        distance,
        distance_low,
        distance_high,
        n_simulated,
        n_real,
        case
            when measure = 'polite' and difference_low > 0 then 'too polite'
            when measure = 'length' and difference_low > 0 then 'too long-winded'
            when measure = 'length' and difference_high < 0 then 'too short'
            when measure = 'length_variation' and difference_high < 0 then 'too regular'
            when measure in ('typing_slip', 'no_end_mark') and difference_high < 0 then 'too tidy'
            when measure = 'question' and difference_low > 0 then 'asks too much'
            when measure = 'feeling' and difference_low > 0 then 'too full of feeling'
            when measure = 'own_words_again' and difference_low > 0 then 'repeats itself'
            when measure = 'told_at_once' and difference_low > 0 then 'tells all at once'
            when measure = 'told_at_once' and difference_high < 0 then 'holds back'
        end as says,
        edges,
        simulated,
        people,
    from user_likeness
    order by simulator, language, measure

)

select * from compared
