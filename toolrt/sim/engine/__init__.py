"""What runs one execution: Trio's scheduler under a controlled clock, and the record of what it did.

From the ground up: `_clock`; `_turns`, `_waiting`, `_offers`, `_places`; `_roster` (the tasks), `_record`, `_ending`,
`_hook` (what Trio calls), `_execution` (the result), `_executions` (one or many in a host), `_host`.
"""
