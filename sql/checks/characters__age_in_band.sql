-- one row per character whose age is not that of its age band
with

characters as (

    select * from characters

),

age_bands (age_band, low, high) as (

    values
    ('Childhood', 6, 11),
    ('Adolescence', 12, 14),
    ('Youth', 15, 24),
    ('Adulthood', 25, 39),
    ('Middle age', 40, 59),
    ('Old age', 60, 69),
    ('Advanced age', 70, 95)

),

out_of_band as (

    select
        characters.character_id,
        characters.age,
        characters.age_band,
    from characters
    left join age_bands on characters.age_band = age_bands.age_band
    where
        age_bands.age_band is null
        or characters.age not between age_bands.low and age_bands.high

)

select * from out_of_band
