-- one row per value that is not the one in metrics, once there are any. `expected` is the name of a table or step with
-- the values that they should have: benchmark, target, judge (null: the panel), metric, pool (null: there are none),
-- value, n. Over everything it is the plain mean of the pools' values, and null where a pool with usable seeds has none
create macro other_than_metrics(expected, tolerance := 1e-9) as table
    with

    overall as (

        select * from metrics
        where
            pool is null
            and language is null
            and simulator is null
            and partner is null
            and goal_type is null
            and slice is null

    ),

    pools as (

        select count(distinct pool) as pools
        from chat_seeds
        where error is null

    ),

    together as (

        select
            expected.metric,
            expected.benchmark,
            expected.target,
            expected.judge,
            if(
                count(expected.pool) = 0 or count(expected.value) = any_value(pools.pools), avg(expected.value), null
            ) as value,
            sum(expected.n)::bigint as n,
        from query_table(expected) as expected  -- noqa: RF02
        cross join pools
        group by expected.metric, expected.benchmark, expected.target, expected.judge

    )

    select
        expected.metric,
        expected.benchmark,
        expected.target,
        expected.judge,
        overall.value,
        expected.value as expected_value,
        overall.n,
        expected.n as expected_n,
    from together as expected
    left join overall
        on
            expected.benchmark = overall.benchmark
            and expected.target = overall.target
            and expected.metric = overall.metric
            and expected.judge is not distinct from overall.judge
    where
        exists (select 1 from metrics)
        and (
            overall.n is distinct from expected.n
            or (overall.value is null) <> (expected.value is null)
            or abs(overall.value - expected.value) > tolerance  -- noqa: RF02
        )
