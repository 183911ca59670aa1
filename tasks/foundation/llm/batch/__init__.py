"""`mode: batch`: the engine's calls travel in a provider's batch jobs instead of one by one.

`BatchTransport` is a `Provider` like any other, so cache, re-asks, ledger and budgets know nothing of
it. It gathers calls, writes them into jobs, and answers each when its job has ended. What a job holds
is in SQLite before the provider hears of it, so no kill makes a request be paid for twice.
"""
