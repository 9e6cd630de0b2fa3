"""Runs one execution: Trio's scheduler under a controlled clock, and the record of the steps.

From the ground up:

- `_clock`, `_watched_contents`, `_waiting`, `_turns`, `_extra_choices`, `_source_lines`: parts of one execution.
- `_roster`: its tasks; `_record`: what is kept of it; `_stops`: its errors when it cannot go on.
- `_execution`: the result; `_job`: what to execute; `_scheduler`: the loop that Trio calls.
- `_executions`: one execution after the other in one Trio run; `_host`: as many Trio runs as that takes.
"""
