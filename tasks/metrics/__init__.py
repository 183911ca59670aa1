"""From judgements to scores, intervals, comparisons and agreement (design: what is measured, exactly)."""
