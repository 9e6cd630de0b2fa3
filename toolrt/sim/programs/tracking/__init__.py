"""Access tracking: functions are rewritten so that plain objects report what the running step touches.

Files.  `_rewrite`: what each expression becomes (`_scopes`, `_syntax`: what it asks of the tree).  `_sources`: from a
source to the code of living functions.  `_touch`, `_items`, `_uses`: what rewritten code calls to report loads, stores
and uses.  `_calls`, `_builtins`: what calls touch.  `_kinds`: which objects can change, and which code reports.
`_births`: what objects are called.  `_tracking`: one exploration's tracking, begun with each execution.
"""
