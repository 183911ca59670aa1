"""What a stage will ask its models, before anything is asked: requests, calls, tokens and dollars, low to high.

A stage's `estimate` module says what it asks and what rows it will make (`Estimate`), from its settings and
from what is known of its inputs (`View`). Here that becomes `PlannedCalls`. Everything is pure but `known`,
which measures committed tables. No row depends on it: a fingerprint leaves the estimates out.
"""
