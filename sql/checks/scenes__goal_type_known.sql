-- one row per scene whose goal type is not one of the ten
with

scenes as (

    select * from scenes

),

goal_types (goal_type) as (

    values
    ('persuasion'),
    ('negotiation'),
    ('argument'),
    ('empathy'),
    ('information_exchange'),
    ('advice'),
    ('collaboration'),
    ('relationship_building'),
    ('conflict_resolution'),
    ('casual_sharing')

),

unknown as (

    select
        scenes.scene_id,
        scenes.goal_type,
    from scenes
    left join goal_types on scenes.goal_type = goal_types.goal_type
    where goal_types.goal_type is null

)

select * from unknown
