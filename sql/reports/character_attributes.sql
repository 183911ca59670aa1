-- what was drawn for the characters? one row per language, attribute and value, with its share of the characters
with

characters as (

    select * from characters

),

attributes as (

    select
        language,
        'gender' as attribute,
        gender as found,
    from characters
    union all
    select
        language,
        'age_band' as attribute,
        age_band as found,
    from characters
    union all
    select
        language,
        'moral_value' as attribute,
        unnest(moral_values) as found,
    from characters
    union all
    select
        language,
        'personal_value' as attribute,
        unnest(personal_values) as found,
    from characters
    union all
    select
        language,
        'decision_style' as attribute,
        decision_style as found,
    from characters
    union all
    select
        language,
        'social_skill' as attribute,
        social_skill as found,
    from characters
    union all
    select
        language,
        'inspired_by' as attribute,
        regexp_replace(inspired_by, ':[0-9]+$', '') as found,
    from characters

),

totals as (

    select
        language,
        count(*) as n,
    from characters
    group by language

),

counted as (

    select
        language,
        attribute,
        found,
        count(*) as characters,
    from attributes
    group by language, attribute, found

),

shares as (

    select
        counted.language,
        counted.attribute,
        counted.found,
        counted.characters,
        totals.n,
        round(100.0 * counted.characters / totals.n, 1) as percent,
    from counted
    inner join totals on counted.language = totals.language
    order by counted.attribute asc, counted.language asc, counted.characters desc, counted.found asc

)

select * from shares
