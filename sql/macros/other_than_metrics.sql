-- one row per value that is not the one in metrics, once there are any. `expected` is the name of a table or step with
-- the values that they should have over everything: benchmark, target, judge (null: the panel), metric, value, n
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
    from query_table(expected) as expected  -- noqa: RF02
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
